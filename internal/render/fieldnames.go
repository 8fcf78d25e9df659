package render

import (
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// specFields are the fields of the specs of reconcilers' objects, by kind. Reconcilers get new fields, so a name that
// is not here is no error. A name that is similar to one here is probably misspelt. Kubernetes refuses an object with
// such a field, and with it everything on the host.
var specFields = map[string][]string{
	"Kustomization": {
		"buildMetadata", "commonMetadata", "components", "decryption", "deletionPolicy", "dependsOn", "force", "healthCheckExprs",
		"healthChecks", "ignore", "ignoreMissingComponents", "images", "interval", "kubeConfig", "namePrefix", "nameSuffix", "patches", "path",
		"postBuild", "prune", "retryInterval", "serviceAccountName", "sourceRef", "suspend", "targetNamespace", "timeout", "wait",
	},
	"GitRepository": {
		"ignore", "include", "interval", "provider", "proxySecretRef", "recurseSubmodules", "ref", "secretRef", "serviceAccountName",
		"sparseCheckout", "suspend", "timeout", "url", "verify",
	},
	"OCIRepository": {
		"certSecretRef", "ignore", "insecure", "interval", "layerSelector", "provider", "proxySecretRef", "ref", "secretRef",
		"serviceAccountName", "suspend", "timeout", "url", "verify",
	},
	"HelmRepository": {
		"accessFrom", "certSecretRef", "insecure", "interval", "passCredentials", "provider", "secretRef", "suspend", "timeout", "type", "url",
	},
	"HelmRelease": {
		"chart", "chartRef", "commonMetadata", "dependsOn", "driftDetection", "healthCheckExprs", "install", "interval", "kubeConfig",
		"maxHistory", "persistentClient", "postRenderers", "releaseName", "rollback", "serviceAccountName", "storageNamespace", "suspend",
		"targetNamespace", "test", "timeout", "uninstall", "upgrade", "values", "valuesFrom", "waitStrategy",
	},
	"Application": {
		"destination", "ignoreDifferences", "info", "project", "revisionHistoryLimit", "source", "sourceHydrator", "sources", "syncPolicy",
	},
	"GitRepo": {
		"branch", "caBundle", "clientSecretName", "correctDrift", "deleteNamespace", "disablePolling", "forceSyncGeneration", "helmRepoURLRegex",
		"helmSecretName", "helmSecretNameForPaths", "imageScanCommit", "imageScanInterval", "insecureSkipTLSVerify", "keepResources", "paths",
		"paused", "pollingInterval", "repo", "revision", "serviceAccount", "targetNamespace", "targets", "webhookSecret",
	},
	"HelmOp": {
		"correctDrift", "defaultNamespace", "deleteCRDResources", "deleteNamespace", "dependsOn", "diff", "forceSyncGeneration", "helm",
		"helmSecretName", "ignore", "insecureSkipTLSVerify", "keepResources", "kustomize", "namespace", "namespaceAnnotations",
		"namespaceLabels", "overwrites", "paused", "pollingInterval", "rolloutStrategy", "serviceAccount", "targetRestrictions", "targets", "yaml",
	},
}

// spelling warns of fields that are probably misspelt.
func (a *arranger) spelling(path *fleet.Path, parameters map[string]any) {
	for i := range fieldParameters {
		parameter := &fieldParameters[i]
		fields, _ := parameters[parameter.name].(map[string]any)
		known := specFields[parameter.kind]
		for _, field := range slices.Sorted(maps.Keys(fields)) {
			if slices.Contains(known, field) {
				continue
			}
			if hint := fleet.DidYouMean(field, known); hint != "" {
				a.add(&a.warnings, path.Attribute(parameter.name).Attribute(field), "is no field of a %s that Flotilla knows%s", parameter.kind, hint)
			}
		}
	}
}

// spellings checks the parameters of an assignment, each once.
func (a *arranger) spellings(host *host, assignment *schedule.Assignment) {
	if host.reconciler == "" {
		return
	}
	if parameters := a.templates.parameters[assignment.Target.Name]; parameters != nil && !a.checkedSpelling[assignment.Target.Name] {
		a.checkedSpelling[assignment.Target.Name] = true
		a.spelling(targetPath(assignment.Target).Attribute("manifests").Attribute("parameters"), parameters)
	}
	if name := assignment.Host.ClusterType.Name; host.parameters != nil && !a.checkedSpelling["type "+name] {
		a.checkedSpelling["type "+name] = true
		var root *fleet.Path
		a.spelling(root.Attribute("cluster_types").Key(name).Attribute("parameters"), host.parameters)
	}
}
