package reconciler

const (
	fluxSources = "source.toolkit.fluxcd.io"
	ofFlux      = ".toolkit.fluxcd.io"
	artifact    = "status.artifact.revision"
)

// flux is Flux 2.6 and later.
var flux = Reconciler{
	Name: "flux", Product: "Flux", Namespace: "flux-system", Decisive: fluxDecisive, Own: fluxOwn,
	Deploys: []string{"Kustomization", "HelmRelease"}, Substitutes: true,
	Unordered: func(own, other Manifests, _ bool) string {
		if own.Has(Charts) == other.Has(Charts) {
			return ""
		}
		return "Flux can order Kustomizations and it can order HelmReleases, but not one with the other"
	},
	Kinds: []Kind{
		{
			Group: "kustomize" + ofFlux, Kind: "Kustomization", Versions: "v1,v1beta2", Resource: "kustomizations",
			Role:      Follows | Consumer,
			Sources:   []Reference{{"spec.sourceRef", []string{"GitRepository", "OCIRepository", "Bucket", "ExternalArtifact"}}},
			Has:       []string{"status.lastAppliedRevision"},
			Parameter: "kustomization", Settings: kustomizationSettings, For: Plain, Account: "serviceAccountName", Extended: "dependsOn",
		},
		{
			Group: "helm" + ofFlux, Kind: "HelmRelease", Versions: "v2,v2beta2", Resource: "helmreleases",
			Role: Consumer,
			Sources: []Reference{
				{"spec.chartRef", []string{"OCIRepository", "HelmChart", "ExternalArtifact"}},
				{"status.helmChart", []string{"HelmChart"}}, // which it makes of spec.chart
			},
			// The version of a HelmChart, or the digest of an image.
			Has:       []string{"status.lastAttemptedRevision", "status.lastAttemptedRevisionDigest"},
			Parameter: "helm_release", Settings: helmReleaseSettings, For: Charts, Account: "serviceAccountName", Extended: "dependsOn",
		},
		{
			Group: fluxSources, Kind: "HelmChart", Versions: "v1,v1beta2", Resource: "helmcharts", Role: Source, Gives: artifact,
			Sources: []Reference{{"spec.sourceRef", []string{"HelmRepository", "GitRepository", "Bucket"}}},
			Has:     []string{"status.observedSourceArtifactRevision"},
		},
		{
			Group: fluxSources, Kind: "GitRepository", Versions: "v1,v1beta2", Resource: "gitrepositories", Role: Source, Gives: artifact,
			Sources:   []Reference{{"spec.include[].repository", []string{"GitRepository"}}},
			Has:       []string{"status.includedArtifacts[].revision"},
			Parameter: "git_repository", Settings: gitRepositorySettings, For: Git,
		},
		{
			Group: fluxSources, Kind: "OCIRepository", Versions: "v1,v1beta2", Resource: "ocirepositories", Role: Source, Gives: artifact,
			Parameter: "oci_repository", Settings: ociRepositorySettings, For: OCI,
		},
		{
			Group: fluxSources, Kind: "HelmRepository", Versions: "v1,v1beta2", Resource: "helmrepositories", Role: Source, Gives: artifact,
			Parameter: "helm_repository", Settings: helmRepositorySettings, For: Helm,
		},
		{Group: fluxSources, Kind: "Bucket", Versions: "v1,v1beta2", Resource: "buckets", Role: Source, Gives: artifact},
		{Group: fluxSources, Kind: "ExternalArtifact", Versions: "v1", Resource: "externalartifacts", Role: Source, Gives: artifact},
	},
}

var fluxDecisive = []Decisive{
	{Group: "kustomize" + ofFlux, Kind: "Kustomization", Fields: []Field{
		{"spec.suspend", nil}, {"spec.dependsOn", nil}, // it waits
		{"spec.kubeConfig", nil}, {"spec.targetNamespace", nil}, // it applies elsewhere
		{"spec.serviceAccountName", nil}, // it may do less
		{"spec.components", nil}, {"spec.images", nil}, {"spec.namePrefix", nil}, {"spec.nameSuffix", nil}, {"spec.patches", nil}, {"spec.postBuild", nil},
	}},
	{Group: fluxSources, Kind: "GitRepository", Fields: []Field{
		{"spec.suspend", nil},
		{"spec.ref.commit", nil}, {"spec.ref.name", nil}, {"spec.ref.semver", nil}, {"spec.ref.tag", nil}, // they win over the branch
		{"spec.ignore", nil}, {"spec.include", nil}, {"spec.sparseCheckout", nil}, {"spec.verify", nil},
	}},
	{Group: "notification" + ofFlux, Kind: "Provider", Fields: []Field{{"spec.suspend", nil}}},
	{Group: "notification" + ofFlux, Kind: "Alert", Fields: []Field{{"spec.suspend", nil}, {"spec.inclusionList", nil}}},
}

// fluxOwn leaves out what kustomize-controller has applied, and what helm-controller has of a chart: that is of people.
var fluxOwn = []Own{
	{Group: fluxSources, Kind: "HelmChart", Managers: []string{"helm-controller", "source-controller", "gotk-helm-controller", "gotk-source-controller"}},
	{Kind: "Secret", Name: "sh.helm.release.v1.*", Managers: []string{"helm-controller"}},
}
