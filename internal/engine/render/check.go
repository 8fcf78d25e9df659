package render

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// maxConfigMap is Kubernetes' limit on all values of a ConfigMap, in bytes.
const maxConfigMap = 1 << 20

// Check checks rendered files as a cluster reads them. Findings name the template, the file and the line.
func (t *Templates) Check(subject Subject, files []AssignmentFile) fleet.Findings {
	host := t.hostOf(subject.Assignment)
	check := newFolderCheck(t, host, subject)
	check.addEncrypted()
	var open []uncheckedFile
	for i := range files {
		for _, template := range host.templates {
			if template.file != files[i].Name {
				continue
			}
			if files[i].isValid && host.isBuiltin {
				continue
			}
			shape := t.shapeOf(host, template, subject, check.names, files[i].Content)
			// Built-in templates write different kinds, so their checked shapes cannot collide. Users' templates may.
			if !host.isBuiltin || shape == nil || !shape.checked.Load() {
				open = append(open, uncheckedFile{template, &files[i], shape})
			}
		}
	}
	isRight := true
	for _, u := range open {
		isRight = isRight && (check.isQuicklyValid(u) || check.checkFile(u.template, *u.file))
	}
	if !isRight { // again, with lines
		clear(check.objects)
		check.addEncrypted()
		check.findings = nil
	}
	for _, u := range open {
		isContentRight := isRight || check.checkFile(u.template, *u.file)
		if !u.template.isBuiltin {
			check.reportCredentials(u)
		} else if u.shape != nil && isContentRight {
			u.shape.checked.Store(true)
		}
	}
	return check.findings
}

type uncheckedFile struct {
	template *compiledTemplate
	file     *AssignmentFile
	shape    *shape
}

func (t *Templates) shapeOf(host *hostTemplates, template *compiledTemplate, subject Subject, names slots, content []byte) *shape {
	key, hasShape := t.shapeKeyOf(host, template, subject)
	if !hasShape {
		return nil
	}
	shape := t.shapes.with(&key).get(&key).shape
	if shape == nil || shape == noShape || !shape.matches(content, names) {
		return nil
	}
	return shape
}

type position struct {
	file string
	line int
}

type folderCheck struct {
	subject    Subject
	templates  *Templates
	catalog    *kinds.Catalog
	names      slots
	reconciler *reconciler.Reconciler // built-in, or nil
	// areNamesUnexposed is known only for users' templates.
	areNamesUnexposed bool
	objects           map[objects.Identity]position
	findings          fleet.Findings
}

func newFolderCheck(t *Templates, host *hostTemplates, subject Subject) *folderCheck {
	names := slotsOf(subject)
	return &folderCheck{
		subject: subject, templates: t, catalog: host.catalog, names: names, reconciler: host.reconciler,
		areNamesUnexposed: !host.isBuiltin && !slices.ContainsFunc(names, credential.MayHave),
		objects:           map[objects.Identity]position{},
	}
}

// mayWriteData reports whether documents may lack apiVersion and kind: no agent must read them as manifests.
func (c *folderCheck) mayWriteData(template *compiledTemplate) bool {
	return template.kind == "config" && !c.reconciler.HasAgent()
}
