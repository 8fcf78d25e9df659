package changes

import (
	"slices"
	"strings"
)

func ofEnvironment(*object, role, *keyChange) int { return well }

func ofProvider(*object, role, *keyChange) int { return perhaps }

func ofPolicy(*object, role, *keyChange) int { return hardly }

func ofHydration(_ *object, of role, _ *keyChange) int {
	if of == configRole || of == reconcilerRole {
		return perhaps
	}
	return no
}

func ofRepo(_ *object, of role, _ *keyChange) int {
	if of == configRole || of == policyRole {
		return hardly
	}
	return perhaps
}

// ofRequired is about a workload that the one whose folder it is requires.
func ofRequired(_ *object, of role, _ *keyChange) int {
	if of == reconcilerRole {
		return perhaps
	}
	return no
}

// ofTemplate: a template makes the file of its type, and no other.
func ofTemplate(template *object, of role, _ *keyChange) int {
	if roleTypes[of] == template.group && template.group != "" {
		return well
	}
	return no
}

// ofHost is about a cluster type or cluster. Its labels are in templates; that they decide which containers
// match is another reason.
func ofHost(host *object, of role, _ *keyChange) int {
	switch {
	case of == reconcilerRole && host.has("reconciler", "parameters"),
		of == namespaceRole && host.has("namespace_service"),
		of == policyRole && host.has("namespace_service"),
		of == configRole && host.has("config_type"),
		host.has("cluster_type"):
		return well
	case host.has("labels") && of != configRole:
		return perhaps
	case host.has("labels"):
		return hardly
	}
	return no
}

func ofTarget(target *object, of role, _ *keyChange) int {
	switch {
	case of == reconcilerRole && target.has("manifests"),
		target.has("namespace"):
		return well
	case target.has("labels") && of != configRole:
		return perhaps
	case target.has("labels", "manifests"):
		return hardly
	}
	return no
}

func ofWorkload(workload *object, of role, _ *keyChange) int {
	switch {
	case of == reconcilerRole && workload.has("requires", "workspace"),
		(of == namespaceRole || of == policyRole) && workload.has("workspace"):
		return well
	case workload.has("labels", "workspace") && of != configRole:
		return perhaps
	case workload.has("labels", "requires", "workspace"):
		return hardly
	}
	return no
}

func ofWorkspace(workspace *object, of role, _ *keyChange) int {
	if of == namespaceRole || of == policyRole || of == reconcilerRole && workspace.has("service_account", "argocd_project") {
		return well
	}
	return hardly
}

// ofContainer is provable where the data that changed has the key that changed.
func ofContainer(container *object, of role, key *keyChange) int {
	at := key.segments
	if of != configRole {
		if !holdsConfig(at) {
			return hardly
		}
		if slices.ContainsFunc(at, func(s string) bool { return strings.Contains(s, "config") }) {
			return provably // a version or hash of the values, or a file of them
		}
	}
	switch {
	case len(at) == 0, container.keys == nil:
		return well
	case slices.ContainsFunc(at, func(segment string) bool { return container.keys[segment] }):
		return provably
	case of == configRole && at[0] == "data" && len(at) > 1 && roleOf(at[1]) != configRole:
		return no // another key
	}
	return perhaps
}

// holdsConfig says whether a place outside of the configuration's own file is one where values go.
func holdsConfig(at []string) bool {
	return slices.ContainsFunc(at, func(segment string) bool {
		lower := strings.ToLower(segment)
		return strings.Contains(lower, "config") || strings.Contains(lower, "values") || strings.Contains(lower, "substitute")
	})
}
