package changes

import (
	"slices"
	"strings"
)

func ofEnvironment(*object, role, *keyChange) int { return fitLikely }

func ofProvider(*object, role, *keyChange) int { return fitPossible }

func ofPolicy(*object, role, *keyChange) int { return fitUnlikely }

func ofHydration(_ *object, of role, _ *keyChange) int {
	if of == configRole || of == reconcilerRole {
		return fitPossible
	}
	return fitNone
}

func ofRepo(_ *object, of role, _ *keyChange) int {
	if of == configRole || of == policyRole {
		return fitUnlikely
	}
	return fitPossible
}

// ofRequired is about a workload that the folder's workload requires.
func ofRequired(_ *object, of role, _ *keyChange) int {
	if of == reconcilerRole {
		return fitPossible
	}
	return fitNone
}

// ofTemplate is about a template, which renders only the file of its type.
func ofTemplate(template *object, of role, _ *keyChange) int {
	if roleTypes[of] == template.group && template.group != "" {
		return fitLikely
	}
	return fitNone
}

// ofHost is about a cluster type or cluster. Templates show its labels. That the labels decide which containers
// match is another reason, see matching.
func ofHost(host *object, of role, _ *keyChange) int {
	switch {
	case of == reconcilerRole && host.has("reconciler", "parameters"),
		of == namespaceRole && host.has("namespace_service"),
		of == policyRole && host.has("namespace_service"),
		of == configRole && host.has("config_type"),
		host.has("cluster_type"):
		return fitLikely
	case host.has("labels") && of != configRole:
		return fitPossible
	case host.has("labels"):
		return fitUnlikely
	}
	return fitNone
}

func ofTarget(target *object, of role, _ *keyChange) int {
	switch {
	case of == reconcilerRole && target.has("manifests"),
		target.has("namespace"):
		return fitLikely
	case target.has("labels") && of != configRole:
		return fitPossible
	case target.has("labels", "manifests"):
		return fitUnlikely
	}
	return fitNone
}

func ofWorkload(workload *object, of role, _ *keyChange) int {
	switch {
	case of == reconcilerRole && workload.has("requires", "workspace"),
		(of == namespaceRole || of == policyRole) && workload.has("workspace"):
		return fitLikely
	case workload.has("labels", "workspace") && of != configRole:
		return fitPossible
	case workload.has("labels", "requires", "workspace"):
		return fitUnlikely
	}
	return fitNone
}

func ofWorkspace(workspace *object, of role, _ *keyChange) int {
	if of == namespaceRole || of == policyRole || of == reconcilerRole && workspace.has("service_account", "argocd_project") {
		return fitLikely
	}
	return fitUnlikely
}

// ofContainer is about a config container. It fits for certain where its changed data has the changed key.
func ofContainer(container *object, of role, key *keyChange) int {
	at := key.segments
	if of != configRole {
		if !holdsConfig(at) {
			return fitUnlikely
		}
		if slices.ContainsFunc(at, func(s string) bool { return strings.Contains(s, "config") }) {
			return fitCertain // a version or hash of the values, or a file of them
		}
	}
	switch {
	case len(at) == 0, container.keys == nil:
		return fitLikely
	case slices.ContainsFunc(at, func(segment string) bool { return container.keys[segment] }):
		return fitCertain
	case of == configRole && at[0] == "data" && len(at) > 1 && roleOf(at[1]) != configRole:
		return fitNone // another key
	}
	return fitPossible
}

// holdsConfig says whether a path in another file than that of the configuration is one where values are put.
func holdsConfig(at []string) bool {
	return slices.ContainsFunc(at, func(segment string) bool {
		lower := strings.ToLower(segment)
		return strings.Contains(lower, "config") || strings.Contains(lower, "values") || strings.Contains(lower, "substitute")
	})
}
