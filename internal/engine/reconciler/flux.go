package reconciler

import (
	"fmt"
	"regexp"
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
