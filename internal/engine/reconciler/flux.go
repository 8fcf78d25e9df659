package reconciler

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// AppliedByFlux is the label of applied objects with the name of the Kustomization.
const AppliedByFlux = "kustomize" + ofFlux + "/name"

const (
	fluxSources = "source.toolkit.fluxcd.io"
	ofFlux      = ".toolkit.fluxcd.io"
	artifact    = "status.artifact.revision"
)

// flux is Flux 2.6 and later.
var flux = Reconciler{
	Name: "flux", Product: "Flux", Namespace: "flux-system", Decisive: fluxDecisive, Own: fluxOwn,
	Deployers: []string{"Kustomization", "HelmRelease"}, Repository: AgentName, NoVariable: noVariable, NoFolder: noFolderFlux,
	// Flux 2.7 and later read the label. Earlier versions read the Secret at the next reconciliation.
	SecretValues: &SecretValues{Namespace: "flux-system", Labels: map[string]string{"reconcile.fluxcd.io/watch": "Enabled"}},
	// Kustomizations watch their source and see its new revision at once.
	Refresh: &Refresh{Kind: "GitRepository", Annotation: "reconcile.fluxcd.io/requestedAt", reads: gitRepositoryReads},
	Agent: Agent{
		Objects: "flux", Group: ofFlux[1:],
		Missing:      "Flux is not installed there, or without that controller; install = the output of `flux install --export` brings it",
		BearerTokens: true, Passphrases: true, FluxFeedback: true, Names: []string{"flux-system"}, Synced: "gotk-sync.yaml", BuildsFolders: true,
		Contexts:    []string{"kustomization/{cluster}/*"},
		Confinement: fluxConfinement,
		Controllers: []Controller{
			{Name: "source-controller", Without: "nothing is reconciled"},
			{Name: "kustomize-controller", Without: "nothing is reconciled", Check: checkConcurrency},
			{Name: "notification-controller", Without: "nothing is reported", Reports: true},
		},
	},
	Unverified: fluxUnverified,
	Unordered: func(own, other Manifests, _ bool) string {
		if own.Has(Charts) == other.Has(Charts) {
			return ""
		}
		return "Flux can order Kustomizations and it can order HelmReleases, but not one with the other"
	},
	Kinds: []ObjectKind{
		{
			Group: "kustomize" + ofFlux, Kind: "Kustomization", Versions: "v1,v1beta2", Resource: "kustomizations",
			Pointers:  kustomizationPointers,
			Role:      Follows | Consumer,
			Sources:   []Reference{{Field: "spec.sourceRef", Kinds: []string{"GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"}}},
			Has:       []string{"status.lastAppliedRevision"},
			Parameter: "kustomization", Settings: kustomizationSettings, For: Plain, Account: "serviceAccountName",
			Extended: []string{"dependsOn"},
			Final:    kustomizationFinal, WaitsForAll: true, Removal: fluxRemoval, Applies: AppliedByFlux, Status: kustomizationStatus,
			Running: kustomizationRunning, Root: kustomizationRoot,
		},
		{
			Group: "helm" + ofFlux, Kind: "HelmRelease", Versions: "v2,v2beta2", Resource: "helmreleases", Pointers: helmReleasePointers,
			Role: Consumer,
			Sources: []Reference{
				{Field: "spec.chartRef", Kinds: []string{"OCIRepository", "HelmChart", "ExternalArtifact"}},
				{Field: "status.helmChart", Kinds: []string{"HelmChart"}}, // created from spec.chart
			},
			Has:       []string{"status.lastAttemptedRevision", "status.lastAttemptedRevisionDigest"},
			Parameter: "helm_release", Settings: helmReleaseSettings, For: Charts, Account: "serviceAccountName",
			Extended: []string{"dependsOn", "valuesFrom"},
			Either:   [2]string{"chartRef", "chart"}, EitherFor: OCI,
			InPlace: `is for charts of storage "helm" and "git": use oci_repository`, Applies: "helm" + ofFlux + "/name",
			Final: helmReleaseFinal, Status: helmReleaseStatus, Running: helmReleaseRunning,
		},
		{
			Group: fluxSources, Kind: "HelmChart", Versions: "v1,v1beta2", Resource: "helmcharts", Role: Source, Gives: artifact,
			Wanted:  hasVersion,
			Sources: []Reference{{Field: "spec.sourceRef", Kinds: []string{"HelmRepository", "GitRepository", "Bucket"}}},
			Has:     []string{"status.observedSourceArtifactRevision"},
		},
		{
			Group: fluxSources, Kind: "GitRepository", Versions: "v1,v1beta2", Resource: "gitrepositories", Pointers: sourcePointers,
			Role: Source, Gives: artifact, Wanted: hasRef,
			Sources:   []Reference{{Field: "spec.include[].repository", Kinds: []string{"GitRepository"}, Optional: true}},
			Has:       []string{"status.includedArtifacts[].revision"},
			Parameter: "git_repository", Settings: gitRepositorySettings, For: Git,
			Fetch: fetchGit,
		},
		{
			Group: fluxSources, Kind: "OCIRepository", Versions: "v1,v1beta2", Resource: "ocirepositories", Pointers: sourcePointers,
			Role: Source, Gives: artifact, Wanted: hasRef,
			Parameter: "oci_repository", Settings: ociRepositorySettings, For: OCI, Fetch: fetchOCI,
		},
		{
			Group: fluxSources, Kind: "HelmRepository", Versions: "v1,v1beta2", Resource: "helmrepositories", Pointers: chartsPointers,
			Role: Source, Gives: artifact, Silent: isOCI,
			Parameter: "helm_repository", Settings: helmRepositorySettings, For: Helm,
		},
		{Group: fluxSources, Kind: "Bucket", Versions: "v1,v1beta2", Resource: "buckets", Role: Source, Gives: artifact},
		{Group: fluxSources, Kind: "ExternalArtifact", Versions: "v1", Resource: "externalartifacts", Role: Source, Gives: artifact},
	},
}

var fluxDecisive = []Decisive{
	{
		// These wait, reduce permissions, add keys, or change manifests.
		Group: "kustomize" + ofFlux, Kind: "Kustomization",
		Fields:    anyValue("spec", "suspend", "dependsOn", "serviceAccountName", "decryption", "postBuild"),
		Diverting: anyValue("spec", "kubeConfig", "targetNamespace", "components", "images", "namePrefix", "nameSuffix", "patches"),
	},
	// Other refs take precedence over the branch, and a proxy is another server to read from.
	{Group: fluxSources, Kind: "GitRepository", Fields: anyValue("spec",
		"suspend", "ref.commit", "ref.name", "ref.semver", "ref.tag", "ignore", "include", "sparseCheckout", "verify", "proxySecretRef",
	)},
	{Group: "notification" + ofFlux, Kind: "Provider", Fields: anyValue("spec", "suspend", "proxy", "proxySecretRef")},
	{Group: "notification" + ofFlux, Kind: "Alert", Fields: anyValue("spec", "suspend", "inclusionList")},
}

// fluxOwn excludes objects that Flux applies for users.
var fluxOwn = []Own{
	{Group: fluxSources, Kind: "HelmChart", Managers: []string{
		"helm-controller", "source-controller", "gotk-helm-controller", "gotk-source-controller",
	}},
	{Kind: "Secret", Name: "sh.helm.release.v1.*", Managers: []string{"helm-controller"}},
}

var variable = regexp.MustCompile(`^[_[:alpha:]][_[:alpha:][:digit:]]*$`)

func noVariable(key, value string, isText bool) string {
	switch {
	case !variable.MatchString(key):
		return fmt.Sprintf("key %q cannot be a variable: use letters, digits and _, and no digit at the beginning", key)
	case !isText:
		return fmt.Sprintf("the value of key %q is an object or a list, and Flux substitutes text", key)
	case strings.ContainsAny(value, "\n\r"):
		return fmt.Sprintf("the value of key %q has several lines, which Flux would join", key)
	}
	return ""
}

const enoughConcurrency = 10

// checkConcurrency warns of few workers. A Kustomization that waits for health blocks one, so a few unready workloads
// can keep the root objects from the next commit.
func checkConcurrency(deployment *unstructured.Unstructured) string {
	workers := 4
	for _, container := range jsonObject(deployment.Object).list("spec", "template", "spec", "containers") {
		for _, text := range container.texts("args") {
			if gates, ok := strings.CutPrefix(text, "--feature-gates="); ok && strings.Contains(gates, "CancelHealthCheckOnNewRevision=true") {
				return ""
			}
			if number, ok := strings.CutPrefix(text, "--concurrent="); ok {
				if n, err := strconv.Atoi(number); err == nil {
					workers = n
				}
			}
		}
	}
	if workers >= enoughConcurrency {
		return ""
	}
	return "the Deployment kustomize-controller has " + strconv.Itoa(workers) +
		" workers, and waits for health with them: a workload that does not get ready keeps newer commits from arriving. " +
		"Give it the argument --feature-gates=CancelHealthCheckOnNewRevision=true, or --concurrent=20"
}

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

var fluxRemoval = Removal{
	// The finalizer reads the spec at the time of deletion.
	Keeping: patching(change{"spec.prune", from(true, false)}, change{"spec.deletionPolicy", func(policy any) any {
		switch policy {
		case nil, "", "MirrorPrune", "Orphan":
			return nil
		}
		return "Orphan"
	}}),
	// A suspended Kustomization removes nothing.
	Pruning: patching(
		change{"spec.prune", to(true)},
		change{"spec.deletionPolicy", from("Orphan", "Delete")},
		change{"spec.suspend", from(true, false)},
	),
	Removes: fluxRemoves, Inventory: fluxInventory, Kept: keptByFlux, Mark: markForFlux,
}

const fluxPrune = "kustomize" + ofFlux + "/prune"

func keptByFlux(applied *unstructured.Unstructured) bool {
	return strings.EqualFold(applied.GetAnnotations()[fluxPrune], "disabled") || strings.EqualFold(applied.GetLabels()[fluxPrune], "disabled")
}

func markForFlux(*unstructured.Unstructured) (annotation, value string) { return fluxPrune, "disabled" }

func fluxRemoves(live *unstructured.Unstructured) bool {
	spec := jsonObject(live.Object).object("spec")
	switch policy := spec.text("deletionPolicy"); policy {
	case "", "MirrorPrune":
		return spec.flag("prune") && !spec.flag("suspend")
	default:
		return policy != "Orphan" && !spec.flag("suspend")
	}
}

// inventoryID matches <namespace>_<name>_<group>_<kind>. Two underscores in the name stand for a colon.
var inventoryID = regexp.MustCompile(`^([^_]*)_(.+)_([^_]*)_([^_]+)$`)

func fluxInventory(live *unstructured.Unstructured) []InventoryEntry {
	var found []InventoryEntry
	for _, one := range jsonObject(live.Object).list("status", "inventory", "entries") {
		id, version := inventoryID.FindStringSubmatch(one.text("id")), one.text("v")
		if id != nil && version != "" {
			found = append(found, InventoryEntry{id[3], version, id[4], id[1], strings.ReplaceAll(id[2], "__", ":")})
		}
	}
	return found
}

// Copy is a folder of a source that a Flux ArtifactGenerator copies into an artifact. From and To have no leading or
// trailing slash.
type Copy struct {
	Kind, Name, From, To string
}

// IsGenerator reports whether objects of a kind create ExternalArtifacts.
func IsGenerator(group, kind string) bool {
	return group == "source.extensions.fluxcd.io" && kind == "ArtifactGenerator"
}

// IsGenerated reports whether a generator creates the objects of the kind.
func (k *ObjectKind) IsGenerated() bool { return k.Kind == "ExternalArtifact" }

// CopiesOf returns the whole folders that a generator copies into an artifact.
func CopiesOf(spec map[string]any, artifact string) (copies []Copy) {
	read := readFields(map[string]any{"spec": spec}, "spec")
	sources := map[string]Copy{}
	read.each("sources", func(one *fields) {
		sources[one.text("alias")] = Copy{Kind: one.text("kind"), Name: one.text("name")}
	})
	read.each("artifacts", func(one *fields) {
		if one.text("name") != artifact {
			return
		}
		one.each("copy", func(item *fields) {
			alias, from, _ := strings.Cut(strings.TrimPrefix(item.text("from"), "@"), "/")
			from, isAll := strings.CutSuffix("/"+from, "/**")
			to, isInto := strings.CutPrefix(item.text("to"), "@artifact/")
			source, isKnown := sources[alias]
			if isAll && isInto && isKnown && !strings.ContainsAny(from, "*?[") && isEmpty(item.value("exclude")) {
				source.From, source.To = strings.Trim(from, "/"), strings.Trim(to, "/")
				copies = append(copies, source)
			}
		})
	})
	return copies
}
