package reconciler

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

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

const fleetCommitLabel = "fleet.cattle.io/commit"

// gitRepoStatus evaluates a GitRepo or HelmOp with its Bundles, which get a commit later, and are ready before their
// BundleDeployments.
func gitRepoStatus(l *Listing, g *ListedObject) verdict.Status {
	own := g.ready(func(condition) bool { return !hasApplyErrors(g) })
	for _, name := range []string{"Accepted", "GitPolling"} {
		if c, ok := g.condition(name); ok && c.status == "False" && g.isCurrent(c) {
			return g.say(verdict.Failed, c.changed, "cannot be read: %s", whyOf(c.message, c.reason))
		}
	}
	if own.Verdict == verdict.Failed || g.text("metadata", "deletionTimestamp") != "" {
		return own
	}
	if reason, unlisted := l.unlisted["Bundle"]; unlisted {
		return verdict.Worst(own, g.say(verdict.Unknown, own.Since, "is deployed by Bundles, which cannot be read: %s", reason))
	}
	bundles := 0
	for _, b := range l.madeBy(g) {
		bundles++
		commit, has := g.text("status", "commit"), b.Labels()[fleetCommitLabel]
		if commit != "" && has != "" && commit != has {
			own = verdict.Worst(own, b.say(verdict.Progressing, own.Since, "has commit %s, and its GitRepo has %s", has, commit))
			continue
		}
		if g.Kind == "HelmOp" && !hasChartOf(b, g) {
			own = verdict.Worst(own, b.say(verdict.Progressing, own.Since, "does not have the chart of its HelmOp yet, or not with its values"))
			continue
		}
		own = verdict.Worst(own, bundleStatus(l, b))
	}
	if bundles == 0 && own.Verdict == verdict.Ready {
		return g.say(verdict.Progressing, own.Since, "has no Bundles yet")
	}
	return own
}

// hasChartOf compares charts and values, because a Bundle records no generation of its HelmOp, whose status has the
// exact version for a range.
func hasChartOf(bundle *ListedObject, helmOp *ListedObject) bool {
	chart := func(of *ListedObject) any {
		fields := maps.Clone(of.object("spec", "helm"))
		delete(fields, "version")
		return withoutDefaults(map[string]any(fields))
	}
	version, wanted := bundle.text("spec", "helm", "version"), helmOp.text("spec", "helm", "version")
	if !isExact(wanted) {
		wanted = helmOp.text("status", "version")
	}
	return sameValue(chart(bundle), chart(helmOp)) && (wanted == "" || version == wanted)
}

func bundleStatus(l *Listing, b *ListedObject) verdict.Status {
	own := b.ready(func(condition) bool { return !hasApplyErrors(b) })
	ready, _ := b.number("status", "summary", "ready")
	desired, known := b.number("status", "summary", "desiredReady")
	if own.Verdict == verdict.Ready && known && ready < desired {
		own = b.say(verdict.Progressing, own.Since, "is ready on %d of %d clusters", ready, desired)
	}
	if reason, unlisted := l.unlisted["BundleDeployment"]; unlisted {
		own = verdict.Worst(own, b.say(verdict.Unknown, own.Since, "is deployed by a BundleDeployment, which cannot be read: %s", reason))
	}
	for _, d := range l.madeBy(b) {
		own = verdict.Worst(own, bundleDeploymentStatus(l, d))
	}
	return own
}

func hasApplyErrors(b *ListedObject) bool {
	refused, _ := b.number("status", "summary", "errApplied")
	return refused > 0
}

func bundleDeploymentStatus(l *Listing, d *ListedObject) verdict.Status {
	deployed, known := d.condition("Deployed")
	if known && deployed.status == "False" {
		return d.say(verdict.Failed, deployed.changed, "cannot be deployed: %s", whyOf(deployed.message, deployed.reason))
	}
	wanted := d.text("spec", "deploymentID")
	if applied := d.text("status", "appliedDeploymentID"); wanted == "" || applied != wanted {
		return d.say(verdict.Progressing, deployed.changed, "has not deployed its present content yet")
	}
	own := d.ready(func(condition) bool { return true })
	if own.Verdict != verdict.Ready {
		return own
	}
	if value, is := d.value("status", "nonModified").(bool); is && !value {
		return d.say(verdict.Progressing, own.Since, "has objects that were changed on the cluster")
	}
	if !d.flag("status", "ready") {
		return d.say(verdict.Progressing, own.Since, "is not ready yet")
	}
	return own
}

func gitRepoRoot(l *Listing, g *ListedObject, at folder.Location, dir string) (Root, bool) {
	paths, _ := g.value("spec", "paths").([]any)
	branch := g.text("spec", "branch")
	if branch != "" && branch != at.Branch || !slices.ContainsFunc(paths, func(p any) bool {
		text, ok := p.(string)
		return ok && clean(text) == dir
	}) {
		return Root{}, false
	}
	return Root{Applied: gitRepoApplied(l, g), SameRepository: SameRepository(g.text("spec", "repo"), at.URL)}, true
}

// gitRepoApplied compares the commit that a GitRepo has read with its deployed Bundles.
func gitRepoApplied(l *Listing, g *ListedObject) Applied {
	is := Applied{Root: g.ObjectName, Status: gitRepoStatus(l, g), Hindered: g.hindered()}
	read := g.text("status", "commit")
	if !folder.IsCommit(read) {
		return is
	}
	for _, b := range l.madeBy(g) {
		if b.Labels()[fleetCommitLabel] != read || !isDeployed(l, b) {
			is.Attempted = read
			return is
		}
	}
	is.Commit = read
	return is
}

func isDeployed(l *Listing, b *ListedObject) bool {
	return b.isCurrent(condition{}) && !slices.ContainsFunc(l.madeBy(b), func(d *ListedObject) bool {
		return d.text("status", "appliedDeploymentID") != d.text("spec", "deploymentID")
	})
}

// gitRepoRunning is empty while a commit arrives, because no field names the previous content of BundleDeployments.
func gitRepoRunning(l *Listing, g *ListedObject) Running {
	is := Running{Revision: g.text("status", "commit")}
	if ref := cmp.Or(g.text("spec", "revision"), g.text("spec", "branch")); ref != is.Revision && g.isCurrent(condition{}) {
		is.Version = ref
	}
	bundles := l.madeBy(g)
	if is.Revision == "" || !showsDeployments(l, bundles) || slices.ContainsFunc(bundles, func(b *ListedObject) bool {
		return b.Labels()[fleetCommitLabel] != is.Revision || !isDeployed(l, b)
	}) {
		return Running{}
	}
	return is
}

func helmOpRunning(l *Listing, h *ListedObject) Running {
	var all []Running
	bundles := l.madeBy(h)
	for _, b := range bundles {
		if !isDeployed(l, b) {
			return Running{}
		}
		// A chart in an OCI registry is named by its repository.
		chart := cmp.Or(b.text("spec", "helm", "chart"), b.text("spec", "helm", "repo"))
		all = append(all, Running{Version: b.text("spec", "helm", "version"), Chart: chart[strings.LastIndexByte(chart, '/')+1:]})
	}
	if !showsDeployments(l, bundles) {
		return Running{}
	}
	return MergeRunning(all...)
}

func showsDeployments(l *Listing, bundles []*ListedObject) bool {
	return len(bundles) > 0 && !slices.ContainsFunc(bundles, func(b *ListedObject) bool { return len(l.madeBy(b)) == 0 })
}
