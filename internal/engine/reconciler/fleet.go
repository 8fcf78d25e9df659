package reconciler

const (
	fleetGroup = "fleet.cattle.io"
	repoLabel  = "fleet.cattle.io/repo-name"
)

// fleet is Rancher Fleet 0.12 and later, installed in each cluster.
var fleet = Reconciler{
	Name: "fleet", Product: "Rancher Fleet", Namespace: "fleet-local",
	Reserved:     []string{"cattle-fleet-system", "cattle-fleet-local-system"},
	SecretValues: &SecretValues{}, Decisive: fleetDecisive, Own: fleetOwn, Deployers: []string{"GitRepo", "HelmOp"},
	NoRename: "Rancher Fleet names what it deploys after the folder, and removes it when the folder moves",
	Agent: Agent{
		Objects: "fleet", Group: fleetGroup,
		Missing: "Rancher Fleet is not installed there; its charts fleet-crd and fleet bring it, " +
			"or install = what `helm template` makes of them",
		NoFeedback: "cannot be set for Rancher Fleet, which does not report to Git hosts: " +
			"ask the clusters themselves, by feedback = { clusters = true } of flotilla_compliance",
	},
	NoRefresh: "Rancher Fleet looks when its polling interval has passed, or when the Git host tells its webhook of a push: " +
		"forceSyncGeneration only deploys again what it has read. Set up the webhook at the Git host, or a shorter interval of flotilla_agent",
	NoSOPS:    "Rancher Fleet decrypts nothing",
	NoObjects: noObjects,
	Unordered: func(own, _ Manifests, _ bool) string {
		if !own.Has(Git) {
			return ""
		}
		return "Rancher Fleet cannot apply anything before a GitRepo"
	},
	Kinds: []ObjectKind{
		{
			Group: fleetGroup, Kind: "GitRepo", Versions: "v1alpha1", Resource: "gitrepos", Pointers: gitRepoPointers,
			Role: Follows | Consumer | Maker, Makes: []string{"Bundle"}, Label: repoLabel,
			Parameter: "git_repo", Settings: gitRepoSettings, For: Git, Account: "serviceAccount", Removal: fleetRemoval,
			Status: gitRepoStatus, Running: gitRepoRunning, Root: gitRepoRoot,
		},
		{
			Group: fleetGroup, Kind: "HelmOp", Versions: "v1alpha1", Resource: "helmops", Pointers: helmOpPointers,
			Role: Consumer | Maker, Makes: []string{"Bundle"}, Label: "fleet.cattle.io/fleet-helm-name",
			Parameter: "helm_op", Settings: helmOpSettings, For: Helm | OCI, Account: "serviceAccount",
			Extended: []string{"dependsOn", "helm.valuesFrom"},
			Status:   gitRepoStatus, Running: helmOpRunning,
		},
		{
			Group: fleetGroup, Kind: "Bundle", Versions: "v1alpha1", Resource: "bundles",
			Role: Consumer | Maker, Makes: []string{"BundleDeployment"},
			Label: "fleet.cattle.io/bundle-name", NamespaceLabel: "fleet.cattle.io/bundle-namespace", Removal: fleetRemoval,
			Status: bundleStatus,
		},
		{
			Group: fleetGroup, Kind: "BundleDeployment", Versions: "v1alpha1", Resource: "bundledeployments", Role: Consumer,
			Status: bundleDeploymentStatus,
		},
	},
}

var fleetRemoval = Removal{
	Keeping: patching(change{"spec.keepResources", to(true)}), Pruning: patching(change{"spec.keepResources", from(true, false)}),
}

var fleetDecisive = []Decisive{
	{
		Group: fleetGroup, Kind: "GitRepo", Diverting: anyValue("spec", "targetNamespace", "bundles"),
		Fields: anyValue("spec", "paused", "disablePolling", "revision", "serviceAccount", "insecureSkipTLSVerify"),
	},
}

// fleetOwn includes the Bundles that GitRepos create through the fleet CLI. Users' Bundles have no label.
var fleetOwn = []Own{
	{Managers: []string{"fleetcontroller", "fleetagent", "gitjob"}},
	{Group: fleetGroup, Kind: "Bundle", Label: repoLabel, Managers: []string{"fleet", "fleetcontroller", "fleetagent", "gitjob"}},
}
