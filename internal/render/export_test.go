package render

import "github.com/flotilla/terraform-provider-flotilla/internal/fleet"

// IsSimpleConfigMap says whether Check leaves a file at a glance.
var IsSimpleConfigMap = isSimpleConfigMap

// FullCheck checks a file with all that Check has.
func FullCheck(t *Templates, subject Subject, file File) fleet.Findings {
	host := t.hosts[subject.Assignment.Host.ClusterType.Name]
	check := &check{assignment: subject.Assignment.Key(), subject: subject, reconciler: host.reconciler, objects: map[identity]position{}}
	for _, template := range host.templates {
		if template.file == file.Name {
			check.content(template, file)
		}
	}
	return check.findings
}
