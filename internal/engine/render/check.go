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
	defer check.releaseObjects()
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
			// Built-in templates write different kinds, so their checked shapes cannot collide. Users' templates may.
			if shape := files[i].shape; !host.isBuiltin || shape == nil || !shape.checked.Load() {
				open = append(slices.Grow(open, len(files)-i), uncheckedFile{template: template, file: &files[i]})
			}
		}
	}
	isRight := true
	for i := range open {
		isRight = isRight && (check.isQuicklyValid(&open[i]) || check.checkFile(open[i].template, *open[i].file))
	}
	if !isRight { // again, with lines
		clear(check.objects)
		check.addEncrypted()
		check.findings = nil
	}
	for i := range open {
		u := &open[i]
		isContentRight := isRight || check.checkFile(u.template, *u.file)
		if !u.template.isBuiltin {
			check.reportCredentials(u)
		} else if u.file.shape != nil && isContentRight {
			u.file.shape.checked.Store(true)
		}
	}
	return check.findings
}

type uncheckedFile struct {
	template     *compiledTemplate
	file         *AssignmentFile
	isShapeValid bool // with the names of the folder
	text         string
}

func (u *uncheckedFile) content() string {
	if u.text == "" {
		u.text = string(u.file.Content)
	}
	return u.text
}

type position struct {
	file string
	line int
}

type objectPositions map[objects.Identity]position

type folderCheck struct {
	subject    Subject
	templates  *Templates
	catalog    *kinds.Catalog
	names      slots
	reconciler *reconciler.Reconciler // built-in, or nil
	// areNamesUnexposed is known only for users' templates.
	areNamesUnexposed bool
	objects           objectPositions
	findings          fleet.Findings
}

func newFolderCheck(t *Templates, host *hostTemplates, subject Subject) *folderCheck {
	names := slotsOf(subject)
	return &folderCheck{
		subject: subject, templates: t, catalog: host.catalog, names: names, reconciler: host.reconciler,
		areNamesUnexposed: !host.isBuiltin && !slices.ContainsFunc(names, credential.MayHave),
		objects:           t.objects.Get().(objectPositions),
	}
}

// releaseObjects keeps a small map for other folders. A new one for each takes a twentieth of the memory.
func (c *folderCheck) releaseObjects() {
	const most = 64
	if len(c.objects) <= most {
		clear(c.objects)
		c.templates.objects.Put(c.objects)
	}
}

// mayWriteData reports whether documents may lack apiVersion and kind: no agent must read them as manifests.
func (c *folderCheck) mayWriteData(template *compiledTemplate) bool {
	return template.kind == "config" && !c.reconciler.HasAgent()
}
