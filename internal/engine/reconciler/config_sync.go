package reconciler

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	syncGroup     = "configsync.gke.io"
	syncDeletion  = "configsync.gke.io/deletion-propagation-policy"
	syncFinalizer = "configsync.gke.io/reconciler"
)

// configSync is Config Sync 1.20 and later on each cluster.
var configSync = Reconciler{
	Name: "config-sync", Product: "Config Sync", NoSecretValues: "Config Sync deploys no charts of Flotilla",
	Namespace: "config-management-system",
	Reserved:  []string{"config-management-monitoring", "resource-group-system"},
	NoRefresh: "Config Sync offers no way to ask it: set a shorter interval of flotilla_agent",
	NoSOPS:    "Config Sync decrypts nothing",
	NoObjects: noObjects,
	OneImage:  true,
	// The name is part of a label: "config-management-system_<name>".
	LongestName: 38,
	Decisive:    syncDecisive, Deployers: []string{"RootSync"}, ReadsJSON: true, RejectsDuplicates: true, NoFolder: noFolderSync,
	Agent: Agent{
		Objects: "config-sync", Group: syncGroup,
		Missing: "Config Sync is not installed there; install = the manifest of one of its releases brings it (config-sync-manifest.yaml)",
		Auth:    map[string]string{"github_app": "githubapp", "ssh_private_key": "ssh", "password": "token", "": "none"},
		NoFeedback: "cannot be set for Config Sync, which does not report to Git hosts: " +
			"ask the clusters themselves, by feedback = { clusters = true } of flotilla_compliance",
		Controllers: []Controller{
			{Name: "reconciler-manager", Without: "nothing is reconciled"},
			{Name: "resource-group-controller-manager", Without: "it is not known whether what is applied is ready"},
		},
	},
	Unordered: func(Manifests, Manifests, bool) string {
		return "Config Sync waits until another RootSync is set up, and not until what it applies is there"
	},
	Kinds: []ObjectKind{
		{
			Group: syncGroup, Kind: "RootSync", Versions: "v1beta1", Resource: "rootsyncs", Pointers: syncPointers,
			Role: Follows | Consumer | Maker, Makes: []string{"ResourceGroup"},
			Parameter: "root_sync", Settings: rootSyncSettings, For: (Git | OCI) & Plain, Removal: syncRemoval,
			Status: syncStatus, Running: syncRunning, Root: rootSyncRoot,
		},
		{
			Group: syncGroup, Kind: "RepoSync", Versions: "v1beta1", Resource: "reposyncs", Pointers: syncPointers,
			Role: Consumer | Maker, Makes: []string{"ResourceGroup"},
			Removal: syncRemoval, Status: syncStatus, Running: syncRunning,
		},
		{
			Group: "kpt.dev", Kind: "ResourceGroup", Versions: "v1alpha1", Resource: "resourcegroups", Role: Consumer,
			Status: resourceGroupStatus,
		},
	},
}

var syncDecisive = []Decisive{
	// A revision takes precedence over the branch, roleRefs reduce permissions, and a proxy is another server to read from.
	{Group: syncGroup, Kind: "RootSync", Fields: append(
		anyValue("spec", "git.revision", "override.roleRefs", "git.proxy", "git.noSSLVerify"),
		DecisiveField{"spec.override.statusMode", "disabled"},
	)},
}

// rootSyncSettings lists the fields of Config Sync 1.22's definition.
var rootSyncSettings = slices.Concat(
	decided(byManifests, "sourceFormat", "sourceType", "git.repo", "git.branch", "git.revision", "git.dir", "oci.image", "oci.dir", "helm"),
	decided(byFlotilla, "override.namespaceStrategy"),
	reaching(Secrets, "git.secretRef"),
	trusting(Secrets, "git.caCertSecretRef", "oci.caCertSecretRef"),
	reaching(Accounts, "git.gcpServiceAccountEmail", "oci.gcpServiceAccountEmail", "git.auth", "oci.auth", "override.roleRefs"),
	reaching(Programs, "override.enableShellInRendering"),
	trusting(Content, "git.proxy", "git.noSSLVerify"),
	reaching(Nothing,
		"git", "git.period", "oci", "oci.period", "override", "override.apiServerTimeout", "override.gitSyncDepth", "override.logLevels",
		"override.reconcileTimeout", "override.resources", "override.statusMode",
	),
)

// syncRemoval has no inventory, because only the ResourceGroup lists the applied objects. Pruning adds the finalizer
// too: the controller adds it only some time after the annotation.
var syncRemoval = Removal{Keeping: keepSync, Pruning: pruneSync, Waits: true}

func keepSync(live *unstructured.Unstructured) map[string]any {
	if live.GetAnnotations()[syncDeletion] != "Foreground" && !slices.Contains(live.GetFinalizers(), syncFinalizer) {
		return nil
	}
	left := slices.DeleteFunc(live.GetFinalizers(), func(one string) bool { return one == syncFinalizer })
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{syncDeletion: "Orphan"}, "finalizers": anyOf(left)}}
}

func pruneSync(live *unstructured.Unstructured) map[string]any {
	finalizers := live.GetFinalizers()
	if live.GetAnnotations()[syncDeletion] == "Foreground" && slices.Contains(finalizers, syncFinalizer) {
		return nil
	}
	if !slices.Contains(finalizers, syncFinalizer) {
		finalizers = append(finalizers, syncFinalizer)
	}
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{syncDeletion: "Foreground"}, "finalizers": anyOf(finalizers)},
	}
}
