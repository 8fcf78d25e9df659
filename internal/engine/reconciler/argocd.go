package reconciler

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
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

var applicationFinal = &Final{
	Path: "source.path", Repository: "source.repoURL", Branch: "source.targetRevision",
	Applied: func(l *Listing, a *ListedObject) Applied { return applicationApplied(l, a, 0, false) },
	Drops: func(spec map[string]any) bool {
		policy, _ := spec["syncPolicy"].(map[string]any)
		options, _ := policy["syncOptions"].([]any)
		return slices.Contains(options, any("Validate=false"))
	},
	Request: func(object map[string]any, into *objects.Request) []string {
		name := readFields(object, "metadata").text("name")
		f := readFields(object, "spec")
		f.refuse("source.plugin", "a plugin is a program of the agent")
		into.Namespace = f.text("destination.namespace")
		into.Hooks = argocdHooks
		into.Overrides = []string{".argocd-source.yaml", ".argocd-source-" + parameter.ReplaceAllString(name, "*") + ".yaml"}
		helm, kustomize, directory := f.object("source.helm"), f.object("source.kustomize"), f.object("source.directory")
		// Argo CD detects the tool from the folder unless the source names one.
		isFound := helm == nil && kustomize == nil && directory == nil
		if helm != nil || isFound {
			into.Helm = f.helm(into, name)
		}
		if kustomize != nil || isFound {
			into.Kustomize = f.kustomize()
		}
		if directory != nil || isFound {
			f.refuse("source.directory.jsonnet", "Jsonnet is not rendered")
			into.Directory = &objects.Directory{
				Recurse: f.flag("source.directory.recurse"), Include: f.text("source.directory.include"), Exclude: f.text("source.directory.exclude"),
			}
		}
		return f.problems
	},
	Follow: func(at Place) []Edit {
		return []Edit{
			{"source.repoURL", at.Repository}, {"source.targetRevision", at.Branch}, {"source.path", at.Path},
			{"source.chart", nil}, {"source.helm", nil}, {"source.directory", nil},
			{"source.kustomize", map[string]any{"images": []any{digestName + ":" + at.Digest}}},
		}
	},
}

// argocdHooks excludes Helm's tests and rollback hooks, which Argo CD does not run.
var argocdHooks = &objects.Hooks{
	Helm: []string{"pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-delete", "post-delete"},
	Own:  "argocd.argoproj.io/hook", OwnSkip: "Skip",
	OwnEvents: []string{"PreSync", "Sync", "PostSync", "SyncFail", "PreDelete", "PostDelete"},
}

func (f *fields) helm(into *objects.Request, application string) *objects.Helm {
	f.allowOnly(
		"source.helm", "releaseName", "namespace", "values", "valuesObject", "valueFiles", "ignoreMissingValueFiles", "parameters",
		"fileParameters", "skipCrds", "skipTests", "skipSchemaValidation", "kubeVersion", "apiVersions", "passCredentials",
		"version",
	)
	f.refuse("source.helm.fileParameters", "files are not read as values; use parameters or valuesObject")
	version, apis := f.versions("source.helm")
	if version == "" { // Argo CD passes only the numbers of the cluster's version
		version, _, _ = strings.Cut(strings.ReplaceAll(into.KubernetesVersion, "-", "+"), "+")
	}
	helm := &objects.Helm{
		KubernetesVersion: version, APIVersions: apis,
		ReleaseName: f.text("source.helm.releaseName"), Namespace: into.Namespace, Values: f.object("source.helm.valuesObject"),
		ValueFiles: f.texts("source.helm.valueFiles"), IgnoreMissingValueFiles: f.flag("source.helm.ignoreMissingValueFiles"),
		SkipCRDs: f.flag("source.helm.skipCrds"), SkipTests: f.flag("source.helm.skipTests"),
		SkipSchema: f.flag("source.helm.skipSchemaValidation"),
	}
	if helm.ReleaseName == "" {
		helm.ReleaseName = application
	}
	if text := f.text("source.helm.values"); text != "" && helm.Values == nil { // otherwise Argo CD ignores it
		err := yaml.Unmarshal([]byte(text), &helm.Values, func(decoder *json.Decoder) *json.Decoder {
			decoder.UseNumber()
			return decoder
		})
		if err != nil {
			f.report("source.helm.values", "is not YAML of an object")
		}
	}
	f.each("source.helm.parameters", func(one *fields) {
		parameter := objects.Parameter{Name: one.text("name"), Value: one.text("value"), IsText: one.flag("forceString")}
		helm.Parameters = append(helm.Parameters, parameter)
	})
	return helm
}

func (f *fields) kustomize() *objects.Kustomize {
	f.allowOnly("source.kustomize", "namePrefix", "nameSuffix", "images", "replicas", "patches", "components",
		"commonLabels", "commonAnnotations", "labelWithoutSelector", "labelIncludeTemplates", "kubeVersion", "apiVersions",
		"commonAnnotationsEnvsubst", "forceCommonLabels", "forceCommonAnnotations", "ignoreMissingComponents", "version")
	f.refuse("source.kustomize.version", "Flotilla has its own version of kustomize")
	f.refuse("source.kustomize.commonAnnotationsEnvsubst", "its variables are known to the agent alone")
	f.refuse("source.kustomize.ignoreMissingComponents", "which components are missing is not known")
	_, _ = f.versions("source.kustomize") // for charts in kustomizations, which are not rendered
	kustomize := &objects.Kustomize{
		NamePrefix: f.text("source.kustomize.namePrefix"), NameSuffix: f.text("source.kustomize.nameSuffix"),
		Patches: f.patches("source.kustomize.patches"), Components: f.texts("source.kustomize.components"),
		CommonLabels: f.textMap("source.kustomize.commonLabels"), CommonAnnotations: f.textMap("source.kustomize.commonAnnotations"),
		LabelsWithoutSelector:  f.flag("source.kustomize.labelWithoutSelector"),
		LabelsIncludeTemplates: f.flag("source.kustomize.labelIncludeTemplates"),
	}
	for _, text := range f.texts("source.kustomize.images") {
		kustomize.Images = append(kustomize.Images, imageOf(text))
	}
	f.each("source.kustomize.replicas", func(one *fields) {
		kustomize.Replicas = append(kustomize.Replicas, objects.Replicas{Name: one.text("name"), Count: one.count("count")})
	})
	return kustomize
}

// versions returns the Kubernetes version and APIs that a source sets instead of the cluster's.
func (f *fields) versions(path string) (kubernetes string, apis []string) {
	apis = f.texts(path + ".apiVersions")
	slices.Sort(apis)
	return f.text(path + ".kubeVersion"), slices.Compact(apis)
}

// imageOf parses an image as `kustomize edit set image` does: "<name>=<new name>:<tag>@<digest>". Only one name is
// required.
func imageOf(text string) objects.Image {
	name, rest, renames := strings.Cut(text, "=")
	if !renames {
		rest = text
	}
	rest, digest, _ := strings.Cut(rest, "@")
	tag := ""
	if at := strings.LastIndexByte(rest, ':'); at > strings.LastIndexByte(rest, '/') {
		rest, tag = rest[:at], rest[at+1:]
	}
	image := objects.Image{Name: rest, NewTag: tag, Digest: digest}
	if renames {
		image.Name = name
		if rest != name {
			image.NewName = rest
		}
	}
	if image.Digest != "" {
		image.NewTag = "" // kustomize accepts only one of them
	}
	return image
}
