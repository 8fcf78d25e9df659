package reconciler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	argoGroup = "argoproj.io"
	argoSkips = "argocd.argoproj.io/skip-reconcile"
)

// Names of Argo CD. HubName and HubServer are the destination of a hub itself, unless a Secret renames it.
const (
	HubName       = "in-cluster"
	HubServer     = "https://kubernetes.default.svc"
	SecretType    = "argocd.argoproj.io/secret-type" // label of Secrets, with the value SecretCluster for clusters
	SecretCluster = "cluster"
	// ArgoFinalizer makes Argo CD delete an Application's resources. "/background" and "/foreground" may follow it.
	ArgoFinalizer = "resources-finalizer.argocd.argoproj.io"
)

// The commit statuses of Argo CD's notifications, as templates.
const (
	syncedRevision = "{{.app.status.sync.revision}}"
	triedRevision  = "{{.app.status.operationState.operation.sync.revision}}"
	argoStatus     = "{{.app.status.sync.status}}, {{.app.status.health.status}}"
)

// argocd is Argo CD 3.1 and later on each cluster.
var argocd = Reconciler{
	Name: "argocd", Product: "Argo CD", Namespace: "argocd", Kinds: argoKinds, Decisive: argoDecisive, Own: argoOwn,
	Deployers: []string{"Application"}, ReadsJSON: true, NoFolder: noFolderArgo, Refresh: &argoRefresh,
	NoSOPS:         "Argo CD decrypts nothing without a plugin",
	NoSecretValues: "Argo CD renders charts before they are on a cluster, and reads no Secrets there",
	Agent: Agent{
		Objects: "argocd", Group: argoGroup, BearerTokens: true, KnownHosts: "its ConfigMap argocd-ssh-known-hosts-cm",
		Missing:  "Argo CD is not installed there; install = its manifests/install.yaml brings it",
		Contexts: []string{"argocd/{cluster}", "continuous-delivery/{cluster}"},
		Notices: []Notice{
			{"succeeded", true, syncedRevision, argoStatus}, {"degraded", false, syncedRevision, argoStatus},
			{"failed", false, triedRevision, argoStatus},
		},
		NoticeContext: `{{if eq .app.metadata.name "${name}-cluster"}}${feedback.cluster_context}{{else}}${feedback.cluster_type_context}{{end}}`,
		Controllers: []Controller{
			{Name: "argocd-repo-server", Without: "no repository is read"},
			{Name: "argocd-notifications-controller", Without: "nothing is reported", Reports: true},
		},
	},
	Unordered: func(_, _ Manifests, sameHost bool) string {
		if sameHost {
			return ""
		}
		return "Argo CD orders the objects of one Application, but these belong to two: one of the cluster type and one of the cluster"
	},
}

// argocdHub is Argo CD 3.2 and later on a hub that deploys to other clusters.
var argocdHub = Reconciler{
	Name: "argocd-hub", Product: argocd.Product, Namespace: argocd.Namespace, Kinds: argocd.Kinds, Decisive: argocd.Decisive, Own: argocd.Own,
	Deployers: []string{"ApplicationSet"}, HubOf: argocd.Name, Actions: 2, ReadsJSON: argocd.ReadsJSON, Refresh: argocd.Refresh,
	NoSOPS: argocd.NoSOPS, NoFolder: argocd.NoFolder, NoSecretValues: argocd.NoSecretValues,
	NoRename: "an Argo CD on a hub knows clusters by the name of their cluster type, " +
		"and removes what it has deployed when that changes",
	Agent: Agent{
		Objects: argocd.Agent.Objects, Group: argocd.Agent.Group, Missing: argocd.Agent.Missing,
		BearerTokens: argocd.Agent.BearerTokens, KnownHosts: argocd.Agent.KnownHosts,
		Registers: SecretType + "=" + SecretCluster,
		NoFeedback: `cannot be set for the reconciler "argocd-hub": ask the hub itself, ` +
			`by feedback = { hub = "<its name>" } of flotilla_compliance`,
	},
	Unordered: func(Manifests, Manifests, bool) string {
		return "Argo CD on a hub orders ApplicationSets, but does not wait for their Applications"
	},
}

// argoRefresh uses a normal refresh, which resolves the branch again instead of reading Argo CD's cache.
var argoRefresh = Refresh{Kind: "Application", Annotation: "argocd.argoproj.io/refresh", Value: "normal", reads: applicationReads}

var argoKinds = []ObjectKind{
	{
		Group: argoGroup, Kind: "Application", Versions: "v1alpha1", Resource: "applications", Pointers: applicationPointers,
		Role:      Follows | Consumer,
		Parameter: "application", Settings: applicationSettings, For: Any, Project: "project",
		Removal: applicationRemoval, Status: applicationStatus, Running: applicationRunning, Root: applicationRoot,
		Destination: "spec.destination.name",
		Applies:     "argocd.argoproj.io/tracking-id", Final: applicationFinal,
	},
	{
		Group: argoGroup, Kind: "ApplicationSet", Versions: "v1alpha1", Resource: "applicationsets", Role: Maker,
		Makes: []string{"Application"},
		For:   Any, Template: "template", Removal: applicationSetRemoval, Status: applicationSetStatus, Made: compareApplication,
	},
	{Group: argoGroup, Kind: "AppProject", Versions: "v1alpha1", Resource: "appprojects"},
}

var argoDecisive = []Decisive{
	{
		Group: argoGroup, Kind: "Application", Diverting: argoDiverting("spec"),
		Fields: append(argoFields("spec"), DecisiveField{"metadata.annotations[" + argoSkips + "]", "true"}),
	},
	{
		Group: argoGroup, Kind: "ApplicationSet", Fields: slices.Concat(
			argoFields("spec.template.spec"), argoDiverting("spec.template.spec"),
			anyValue("spec", "ignoreApplicationDifferences", "strategy", "syncPolicy.applicationsSync", "templatePatch"),
		),
	},
	{Group: argoGroup, Kind: "AppProject", Fields: anyValue("spec",
		"clusterResourceBlacklist", "namespaceResourceBlacklist", "namespaceResourceWhitelist",
		"destinationServiceAccounts", "signatureKeys", "syncWindows",
	)},
}

func argoFields(spec string) []DecisiveField {
	return slices.Concat(
		anyValue(spec, "source.chart", "source.directory.exclude", "source.directory.include", "source.ref", "sources"),
		[]DecisiveField{{spec + ".syncPolicy.automated.enabled", false}},
		anyValue(spec, "ignoreDifferences"),
	)
}

func argoDiverting(spec string) []DecisiveField {
	return anyValue(spec, "source.directory.jsonnet", "source.helm", "source.kustomize", "source.plugin", "sourceHydrator")
}

// argoOwn requires names, because Argo CD's web server also creates Secrets and projects for users.
var argoOwn = []Own{
	{Kind: "Secret", Name: "argocd-initial-admin-secret", Managers: []string{"argocd-server"}},
	{Kind: "Secret", Name: "argocd-redis", Managers: []string{"argocd"}},
	{Group: argoGroup, Kind: "AppProject", Name: "default", Managers: []string{"argocd-server", "argocd-application-controller"}},
}

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

var (
	applicationRemoval = Removal{
		Keeping: patching(change{"metadata.finalizers", withoutFinalizer}, change{"spec.syncPolicy.automated.prune", from(true, false)}),
		Pruning: patching(change{"metadata.finalizers", withFinalizer}), Removes: applicationRemoves,
		Inventory: applicationInventory, Waits: true,
		Kept: keptByArgo, Mark: markForArgo, Delay: 2 * time.Second,
	}
	applicationSetRemoval = Removal{
		// The controller restores its Applications to the template.
		Keeping: patching(
			change{preserves, to(true)},
			change{templateFinalizers, withoutFinalizer},
			change{"spec.template.spec.syncPolicy.automated.prune", from(true, false)},
		),
		Pruning: patching(change{preserves, from(true, false)}, change{templateFinalizers, withFinalizer}),
	}
)

const argoOptions = "argocd.argoproj.io/sync-options"

func keptByArgo(applied *unstructured.Unstructured) bool {
	annotations := applied.GetAnnotations()
	return slices.Contains(optionsOf(annotations[argoOptions]), "Delete=false") || annotations["helm.sh/resource-policy"] == "keep"
}

func markForArgo(applied *unstructured.Unstructured) (annotation, value string) {
	options := optionsOf(applied.GetAnnotations()[argoOptions])
	for _, option := range []string{"Prune=false", "Delete=false"} {
		if !slices.Contains(options, option) {
			options = append(options, option)
		}
	}
	return argoOptions, strings.Join(options, ",")
}

func optionsOf(text string) []string {
	var options []string
	for _, option := range strings.Split(text, ",") {
		if option = strings.TrimSpace(option); option != "" {
			options = append(options, option)
		}
	}
	return options
}

const (
	preserves          = "spec.syncPolicy.preserveResourcesOnDeletion"
	templateFinalizers = "spec.template.metadata.finalizers"
)

func withoutFinalizer(finalizers any) any {
	list, _ := finalizers.([]any)
	left := slices.DeleteFunc(slices.Clone(list), func(one any) bool { return isArgoFinalizer(fmt.Sprint(one)) })
	if len(left) == len(list) {
		return nil
	}
	return left
}

func withFinalizer(finalizers any) any {
	list, _ := finalizers.([]any)
	if slices.ContainsFunc(list, func(one any) bool { return isArgoFinalizer(fmt.Sprint(one)) }) {
		return nil
	}
	return append(slices.Clone(list), ArgoFinalizer)
}

func isArgoFinalizer(finalizer string) bool { return strings.HasPrefix(finalizer, ArgoFinalizer) }

func applicationRemoves(live *unstructured.Unstructured) bool {
	to := jsonObject(live.Object).object("spec", "destination")
	isHub := to.text("server") == HubServer || to.text("name") == HubName
	return isHub && slices.ContainsFunc(live.GetFinalizers(), isArgoFinalizer)
}

func applicationInventory(live *unstructured.Unstructured) []InventoryEntry {
	var found []InventoryEntry
	for _, one := range jsonObject(live.Object).list("status", "resources") {
		if one.text("version") != "" && one.text("kind") != "" && one.text("name") != "" {
			found = append(found, InventoryEntry{one.text("group"), one.text("version"), one.text("kind"), one.text("namespace"), one.text("name")})
		}
	}
	return found
}
