package reconciler

import "slices"

// applicationSettings lists the fields of Argo CD 3.4's definition.
var applicationSettings = slices.Concat(
	decided(byNamespace, "destination", "source.helm.namespace", "source.kustomize.namespace"),
	decided(byManifests, "sources", "sourceHydrator", "source.repoURL", "source.path", "source.targetRevision", "source.chart"),
	decided(byName, "source.helm.releaseName"),
	decided(byFlotilla, "syncPolicy.managedNamespaceMetadata"),
	reaching(Accounts, "project"), // a project permits sources and destinations
	reaching(Programs, "source.plugin"),
	reaching(URLs, "source.helm.valueFiles", "source.helm.fileParameters", "source.kustomize.components", "source.kustomize.patches.path"),
	reaching(Content, "source.helm.passCredentials"), // sent to any host that the index names
	reaching(Nothing,
		"ignoreDifferences", "info", "revisionHistoryLimit", "source", "syncPolicy", "source.name",
		"source.ref", // a name for the source
		"source.helm.values", "source.helm.valuesObject.*", "source.helm.parameters",
		"source.kustomize.commonAnnotations.*", "source.kustomize.commonLabels.*",
		"ignoreDifferences.namespace", "source.kustomize.patches.target.namespace", // of objects in the source
	),
)
