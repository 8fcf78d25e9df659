package render

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// maxConfigMap is Kubernetes' limit on the values of a ConfigMap together, in bytes.
const maxConfigMap = 1 << 20

// Check checks the rendered files of an assignment as a cluster reads them. YAML and JSON must parse. Kubernetes
// documents need an apiVersion, a kind, and a valid name and namespace. Labels and values of ConfigMaps must be
// strings. No object may occur twice. Findings name the template, the file and the line.
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
			// Built-in templates write objects of different kinds, so their checked shapes cannot collide. A user's
			// template may write any object.
			if !host.isBuiltin || shape == nil || !shape.checked.Load() {
				open = append(open, uncheckedFile{template, &files[i], shape})
			}
		}
	}
	isRight := true
	for _, u := range open {
		isRight = isRight && (check.isQuicklyValid(u) || check.checkFile(u.template, *u.file))
	}
	if !isRight { // read all files with their lines, since two of them may have the same object
		clear(check.objects)
		check.addEncrypted()
		check.findings = nil
	}
	for _, u := range open {
		isContentRight := isRight || check.checkFile(u.template, *u.file)
		if u.shape != nil && u.shape.checked.Load() {
			continue
		}
		if check.isUnexposed(u.template, *u.file) && isContentRight && u.shape != nil {
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

// identity identifies an object. Kubernetes serves an object in all versions.
type identity struct{ group, kind, namespace, name string }

type position struct {
	file string
	line int
}

// folderCheck checks the files of one assignment.
type folderCheck struct {
	subject    Subject
	templates  *Templates
	catalog    *kinds.Catalog
	names      slots
	reconciler *reconciler.Reconciler // built-in, or nil
	objects    map[identity]position
	findings   fleet.Findings
}

func newFolderCheck(t *Templates, host *hostTemplates, subject Subject) *folderCheck {
	return &folderCheck{
		subject: subject, templates: t, catalog: host.catalog, names: slotsOf(subject), reconciler: host.reconciler,
		objects: map[identity]position{},
	}
}

// mayWriteData reports whether a template may write documents without apiVersion and kind. Only config templates may,
// and only if no agent on the cluster would read them as manifests.
func (c *folderCheck) mayWriteData(template *compiledTemplate) bool {
	return template.kind == "config" && !c.reconciler.HasAgent()
}

func groupOf(apiVersion string) string {
	group, _, hasGroup := strings.Cut(apiVersion, "/")
	if !hasGroup {
		return ""
	}
	return group
}
