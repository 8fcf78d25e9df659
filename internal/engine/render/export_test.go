package render

import "github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"

// ParameterNames has the names of all parameters of built-in templates.
var ParameterNames = parameterNames

// HasShape reports whether a custom template is written from shapes.
func HasShape(kind, manifest string) bool {
	template, _ := compileTemplate(&fleet.Template{Type: kind, Name: "own", Manifests: []string{manifest}})
	return template.hasShape
}

// Shapes returns the number of remembered shapes.
func Shapes(t *Templates) (kept int) {
	for i := range t.shapes.shards {
		for _, seen := range t.shapes.shards[i].all {
			if seen.shape != nil {
				kept++
			}
		}
	}
	return kept
}

// ForgetShapes removes all remembered shapes.
func ForgetShapes(t *Templates) { t.shapes = shapeCache{} }

// IsQuicklyValid reports whether the quick check accepts a file.
func IsQuicklyValid(t *Templates, subject Subject, file AssignmentFile) bool {
	check := newFolderCheck(t, hostOf(t, subject), subject)
	return check.isQuicklyValid(&uncheckedFile{template: templateOf(t, subject, file), file: &file})
}

// FullCheck checks files without the quick check.
func FullCheck(t *Templates, subject Subject, files ...AssignmentFile) fleet.Findings {
	check := newFolderCheck(t, hostOf(t, subject), subject)
	for _, file := range files {
		check.checkFile(templateOf(t, subject, file), file)
		check.reportCredentials(&uncheckedFile{template: templateOf(t, subject, file), file: &file})
	}
	return check.findings
}

func hostOf(t *Templates, subject Subject) *hostTemplates {
	return t.hosts[subject.Assignment.Host.ClusterType.Name]
}

func templateOf(t *Templates, subject Subject, file AssignmentFile) *compiledTemplate {
	for _, template := range hostOf(t, subject).templates {
		if template.file == file.Name {
			return template
		}
	}
	panic("no template writes " + file.Name)
}
