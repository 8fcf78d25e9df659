package reconciler

import "slices"

// The tables list the fields of source-controller 1.9, kustomize-controller 1.9 and helm-controller 1.6.

var kustomizationSettings = slices.Concat(
	decided(byManifests, "path", "sourceRef"),
	decided(byNamespace, "targetNamespace"),
	reaching(Secrets, "decryption.secretRef", "postBuild.substituteFrom"),
	// A provider decrypts with the permissions of the controller's account, too.
	reaching(Accounts, "serviceAccountName", "decryption.provider", "decryption.serviceAccountName"),
	reaching(Clusters, "kubeConfig"),
	reaching(Namespaces, "dependsOn.namespace"),
	reaching(Nothing,
		"buildMetadata", "commonMetadata", "commonMetadata.annotations.*", "commonMetadata.labels.*", "components", "decryption",
		"deletionPolicy", "dependsOn", "force", "healthCheckExprs", "healthChecks", "ignore", "ignoreMissingComponents", "images",
		"interval", "namePrefix", "nameSuffix", "patches", "postBuild", "postBuild.substitute.*", "prune", "retryInterval",
		"suspend", "timeout", "wait", "healthChecks.namespace", "ignore.target.namespace",
		"patches.target.namespace", // of objects in the manifests, or readable by the team's account
	),
)

var gitRepositorySettings = slices.Concat(
	decided(byManifests, "url", "ref"),
	reaching(Secrets, "secretRef"),
	trusting(Secrets, "proxySecretRef", "verify.secretRef"),
	trusting(Nothing, "verify"),
	reaching(Accounts, "provider", "serviceAccountName"),
	reaching(Objects, "include.repository"),
	reaching(Content, "recurseSubmodules"), // fetched with the source's credentials, from any host
	reaching(Nothing, "ignore", "include", "interval", "sparseCheckout", "suspend", "timeout"),
)

var ociRepositorySettings = slices.Concat(
	decided(byManifests, "url", "ref"),
	reaching(Secrets, "secretRef"),
	trusting(Secrets, "proxySecretRef", "certSecretRef", "verify.secretRef", "verify.trustedRootSecretRef"),
	trusting(Nothing, "insecure", "verify", "verify.provider"),
	reaching(Accounts, "provider", "serviceAccountName"),
	reaching(Nothing, "ignore", "interval", "layerSelector", "suspend", "timeout"),
)

var helmRepositorySettings = slices.Concat(
	decided(byManifests, "url", "type"),
	reaching(Secrets, "secretRef"),
	trusting(Secrets, "certSecretRef"),
	trusting(Nothing, "insecure"),
	reaching(Accounts, "provider"),
	reaching(Namespaces, "accessFrom"),
	reaching(Content, "passCredentials"), // sent to any host that the index names
	reaching(Nothing, "interval", "suspend", "timeout"),
)

var helmReleaseSettings = slices.Concat(
	decided(byName, "releaseName"),
	decided(byNamespace, "targetNamespace", "storageNamespace"),
	decided(byManifests, "chartRef", "chart.spec.chart", "chart.spec.version", "chart.spec.sourceRef"),
	reaching(Secrets, "valuesFrom"),
	trusting(Secrets, "chart.spec.verify.secretRef"),
	trusting(Nothing, "chart.spec.verify", "chart.spec.verify.provider"),
	reaching(Accounts, "serviceAccountName"),
	reaching(Clusters, "kubeConfig"),
	reaching(Namespaces, "dependsOn.namespace"),
	reaching(Nothing,
		"chart", "chart.metadata.annotations.*", "chart.metadata.labels.*", "commonMetadata", "commonMetadata.annotations.*",
		"commonMetadata.labels.*", "dependsOn", "driftDetection", "healthCheckExprs", "install", "interval", "maxHistory",
		"persistentClient", "postRenderStrategy", "postRenderers", "rollback", "suspend", "test", "timeout", "uninstall", "upgrade",
		"values.*", "waitStrategy",
		"install.createNamespace", // of the deployment target itself
		"driftDetection.ignore.target.namespace",
		"postRenderers.kustomize.patches.target.namespace", // of objects in the chart
	),
)
