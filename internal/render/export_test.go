package render

import "github.com/flotilla/terraform-provider-flotilla/internal/fleet"

// ParameterNames are the names of all parameters of built-in templates.
var ParameterNames = parameterNames

// IsPlainlyRight says whether Check leaves a file at a glance.
func IsPlainlyRight(t *Templates, subject Subject, file File) bool {
	check, template := checkOf(t, subject, file)
	return check.isPlainlyRight(template, &file)
}

// FullCheck checks a file with all that Check has.
func FullCheck(t *Templates, subject Subject, file File) fleet.Findings {
	check, template := checkOf(t, subject, file)
	check.content(template, file)
	return check.findings
}

// Shapes is how many shapes are kept.
func Shapes(t *Templates) (kept int) {
	for i := range t.shapes.shards {
		for _, seen := range t.shapes.shards[i].shapes {
			if seen.shape != nil {
				kept++
			}
		}
	}
	return kept
}

func checkOf(t *Templates, subject Subject, file File) (*check, *compiled) {
	host := t.hosts[subject.Assignment.Host.ClusterType.Name]
	for _, template := range host.templates {
		if template.file == file.Name {
			return &check{subject: subject, reconciler: host.reconciler, objects: map[identity]position{}}, template
		}
	}
	panic("no template writes " + file.Name)
}
