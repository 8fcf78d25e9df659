package changes

import "strings"

// role is the type of the template that renders a file. Each type of template renders one file.
type role int

const (
	otherRole role = iota
	reconcilerRole
	namespaceRole
	configRole
	policyRole
)

// roleTypes are the types of template.
var roleTypes = map[role]string{
	reconcilerRole: "reconciler", namespaceRole: "namespace", configRole: "config", policyRole: "policy",
}

// roleOf returns the role of a file of an assignment's folder, by its name.
func roleOf(file string) role {
	name, _, _ := strings.Cut(file, ".")
	switch name {
	case "reconciler":
		return reconcilerRole
	case "namespace":
		return namespaceRole
	case "platform-config":
		return configRole
	case "policy":
		return policyRole
	}
	return otherRole
}
