package reconciler

import "slices"

// The tables list the fields of Rancher Fleet 0.15's definitions.

var gitRepoSettings = slices.Concat(
	decided(byManifests, "repo", "branch", "revision", "paths"),
	decided(byNamespace, "targetNamespace"),
	reaching(Secrets, "clientSecretName", "helmSecretName", "helmSecretNameForPaths", "ociRegistrySecret", "webhookSecret"),
	reaching(Accounts, "serviceAccount"),
	reaching(Clusters, "targets"),
	reaching(Namespaces, "deleteNamespace"),
	reaching(Content, "helmRepoURLRegex"), // selects the hosts that get chart credentials
	trusting(Nothing, "caBundle", "insecureSkipTLSVerify"),
	reaching(Nothing,
		"bundles", "correctDrift", "disablePolling", "forceSyncGeneration", "imageScanCommit", "imageScanInterval",
		"keepResources", "paused", "pollingInterval",
	),
)

var helmOpSettings = slices.Concat(
	decided(byNamespace, "defaultNamespace", "namespace"),
	decided(byName, "helm.releaseName"),
	decided(byManifests, "helm.repo", "helm.chart", "helm.version"),
	decided(byFlotilla, "namespaceLabels", "namespaceAnnotations"),
	reaching(Secrets, "helmSecretName", "helmOpOptions.helmOpSecretName", "helm.valuesFrom", "downstreamResources"),
	reaching(Accounts, "serviceAccount"),
	reaching(Clusters, "targets", "targetRestrictions", "rolloutStrategy"),
	reaching(Namespaces,
		"helm.valuesFrom.secretKeyRef.namespace", "helm.valuesFrom.configMapKeyRef.namespace", "deleteNamespace",
		"allowedTargetNamespaceSelector",
	),
	reaching(Objects, "labels", "overwrites", "contentsId", "valuesHash"),
	reaching(Content, "resources", "yaml", "kustomize"),
	trusting(Nothing, "insecureSkipTLSVerify"),
	reaching(Nothing,
		"correctDrift", "deleteCRDResources", "dependsOn", "diff", "forceSyncGeneration", "helm", "helm.values.*", "helm.templateValues.*",
		"helmOpOptions", "ignore", "keepResources", "paused", "pollingInterval",
		"diff.comparePatches.namespace", // of objects in the chart
	),
)
