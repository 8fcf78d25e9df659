package reconciler

import (
	"cmp"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

var kustomizationFinal = &Final{
	Path: "path", Repository: "sourceRef.name", Applied: kustomizationApplied,
	Request: func(object map[string]any, into *objects.Request) []string {
		f := readFields(object, "spec")
		f.refuse("postBuild.substituteFrom", "its values are on the cluster alone; use postBuild.substitute")
		f.refuse("buildMetadata", "it adds what only the agent knows")
		f.refuse("ignoreMissingComponents", "which components are missing is not known")
		into.Namespace = f.text("targetNamespace")
		into.Substitute = f.textMap("postBuild.substitute")
		into.Kustomize = &objects.Kustomize{
			Generate: true, Namespace: into.Namespace, NamePrefix: f.text("namePrefix"), NameSuffix: f.text("nameSuffix"),
			Images: f.images("images"), Patches: f.patches("patches"), Components: f.texts("components"),
			Labels: f.textMap("commonMetadata.labels"), Annotations: f.textMap("commonMetadata.annotations"),
		}
		return f.problems
	},
	Follow: func(at Place) []Edit {
		return []Edit{
			{"path", "./" + at.Path},
			{"sourceRef", map[string]any{"kind": "GitRepository", "name": at.Repository}},
			{"namePrefix", nil}, {"nameSuffix", nil}, {"patches", nil}, {"components", nil}, {"commonMetadata", nil}, {"postBuild", nil},
			{"images", []any{map[string]any{"name": digestName, "newTag": at.Digest}}},
		}
	},
}

var helmReleaseFinal = &Final{
	Path: "chart.spec.chart", Repository: "chart.spec.sourceRef.name", Applied: helmReleaseFinalApplied, Wraps: true,
	// Helm 3 creates objects without field validation. Helm 4, in helm-controller 1.6, requests it.
	Drops: func(map[string]any) bool { return true },
	Request: func(object map[string]any, into *objects.Request) []string {
		f := readFields(object, "spec")
		f.refuse("valuesFrom", "its values are on the cluster alone; use values")
		f.refuse("upgrade.preserveValues", "values of earlier releases are on the cluster alone")
		if strategy := f.text("postRenderStrategy"); strategy != "" && strategy != "combined" {
			f.report("postRenderStrategy", `can only be "combined" to be rendered, which is the default`)
		}
		into.Artifact.Signed = readCosignVerification(f, "chart.spec.verify") || into.Artifact.Signed
		into.Namespace = f.text("targetNamespace")
		into.Helm = &objects.Helm{
			ReleaseName: f.text("releaseName"), Namespace: into.Namespace, Values: f.object("values"),
			ValueFiles: f.texts("chart.spec.valuesFiles"), IgnoreMissingValueFiles: f.flag("chart.spec.ignoreMissingValuesFiles"),
			SkipCRDs: f.text("install.crds") == "Skip", OnCluster: true, VersionMetadata: f.versionMetadata(into),
			SkipSchema: f.flag("install.disableSchemaValidation") && f.flag("upgrade.disableSchemaValidation"),
		}
		into.Hooks = f.helmHooks()
		after := &objects.Kustomize{Labels: f.textMap("commonMetadata.labels"), Annotations: f.textMap("commonMetadata.annotations")}
		if len(f.list("postRenderers")) > 1 {
			f.report("postRenderers", "can only have one element to be rendered: put all into that")
		}
		f.each("postRenderers", func(one *fields) {
			one.allowOnly("", "kustomize")
			one.allowOnly("kustomize", "patches", "images")
			after.Patches, after.Images = one.patches("kustomize.patches"), one.images("kustomize.images")
		})
		if len(after.Labels)+len(after.Annotations)+len(after.Patches)+len(after.Images) > 0 {
			into.Helm.After = after
		}
		return f.problems
	},
	Follow: func(at Place) []Edit {
		return []Edit{
			{"chartRef", nil},
			{"chart.spec.chart", "./" + at.Path}, {"chart.spec.version", nil}, {"chart.spec.reconcileStrategy", "ChartVersion"},
			{"chart.spec.sourceRef", map[string]any{"kind": "GitRepository", "name": at.Repository}},
			{"chart.spec.valuesFiles", nil}, {"chart.spec.ignoreMissingValuesFiles", nil}, {"chart.spec.verify", nil},
			{"commonMetadata", nil}, {"postRenderers", nil}, {"postRenderStrategy", nil},
			{"values", map[string]any{"objects": at.Digest}},
		}
	},
}

func (f *fields) helmHooks() *objects.Hooks {
	hooks := &objects.Hooks{}
	for _, action := range []struct {
		field  string
		events []string
	}{
		{"install", []string{"pre-install", "post-install"}}, {"upgrade", []string{"pre-upgrade", "post-upgrade"}},
		{"rollback", []string{"pre-rollback", "post-rollback"}}, {"uninstall", []string{"pre-delete", "post-delete"}},
	} {
		if !f.flag(action.field + ".disableHooks") {
			hooks.Helm = append(hooks.Helm, action.events...)
		}
	}
	if f.flag("test.enable") {
		hooks.Helm = append(hooks.Helm, "test", "test-success")
	}
	return hooks
}

// versionMetadata returns the build metadata that Flux adds to a chart's version: the start of the commit or of the
// image's digest. With valuesFiles it adds a generation too, which only the cluster knows.
func (f *fields) versionMetadata(into *objects.Request) string {
	const length = 12
	revision := ""
	switch pin := into.Artifact.Pin; {
	case f.text("chartRef.kind") == "OCIRepository":
		_, revision, _ = strings.Cut(pin.Digest, ":")
	case f.text("chart.spec.sourceRef.kind") == "GitRepository" && f.text("chart.spec.reconcileStrategy") == "Revision":
		revision = pin.Commit
	}
	return revision[:min(length, len(revision))]
}

func fetchGit(object map[string]any, into *objects.Request) []string {
	f := readFields(object, "spec")
	for _, path := range []string{"include", "recurseSubmodules", "sparseCheckout"} {
		f.refuse(path, "it changes the content of the source")
	}
	into.Source = &objects.FluxSource{Ignore: f.text("ignore")}
	into.Artifact.Signed = readGitVerification(f) || into.Artifact.Signed
	return f.problems
}

const chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

func fetchOCI(object map[string]any, into *objects.Request) []string {
	f := readFields(object, "spec")
	ignore, layer := f.text("ignore"), f.text("layerSelector.mediaType")
	switch operation := cmp.Or(f.text("layerSelector.operation"), "extract"); {
	case layer == chartLayer && operation == "copy":
		f.refuse("ignore", "the archive of a chart is copied as it is")
	case layer == "" && operation == "extract":
		into.Source = &objects.FluxSource{Ignore: ignore}
	default:
		f.report("layerSelector", "cannot be rendered: Flotilla reads the layer of a chart, or else the first one")
	}
	into.Artifact.Signed = readCosignVerification(f, "verify") || into.Artifact.Signed
	return f.problems
}

// readGitVerification reports whether a GitRepository requires signed commits, and adds problems for checks that Flotilla
// cannot do.
func readGitVerification(f *fields) (isRequired bool) {
	return f.readVerification("verify", func(verify *fields) {
		verify.allowOnly("", "mode", "secretRef")
		if mode := verify.text("mode"); mode != "" && !strings.EqualFold(mode, "HEAD") {
			verify.report("mode", `can only be "HEAD" to be rendered: Flotilla renders a commit, and checks the signature of that`)
		}
	})
}

// readCosignVerification is readGitVerification for artifacts and charts in registries.
func readCosignVerification(f *fields, path string) (isRequired bool) {
	return f.readVerification(path, func(verify *fields) {
		verify.allowOnly("", "provider", "secretRef", "matchOIDCIdentity", "trustedRootSecretRef")
		switch provider := verify.text("provider"); {
		case provider != "" && provider != "cosign":
			verify.report("provider", `can only be "cosign" to be rendered: Flotilla checks no other signatures`)
		case isEmpty(verify.value("secretRef")) || !isEmpty(verify.value("matchOIDCIdentity")) || !isEmpty(verify.value("trustedRootSecretRef")):
			verify.report("", "asks for a signature without a key, which Flotilla cannot check: sign with a key, and name its Secret in secretRef")
		}
	})
}

func (f *fields) readVerification(path string, read func(verify *fields)) (isRequired bool) {
	if f.value(path) == nil {
		return false
	}
	verify := &fields{root: f.object(path), prefix: f.prefix + path + "."}
	read(verify)
	for _, problem := range verify.problems {
		f.problems = append(f.problems, strings.Replace(problem, ". ", " ", 1)) // a problem of the field itself
	}
	return true
}

// fluxUnverified returns why a source is not verified although parameters require it for its kind. Two kinds read
// registries, and the team chooses which.
func fluxUnverified(parameters map[string]any, from Manifests, isRegistry bool) string {
	requires := func(path string) bool { return jsonObject(parameters).value(strings.Split(path, ".")...) != nil }
	const ofCharts, ofArtifacts, ofGit = "helm_release.chart.spec.verify", "oci_repository.verify", "git_repository.verify"
	switch {
	case from.Has(Helm) && isRegistry && requires(ofArtifacts) && !requires(ofCharts):
		return "with " + ofArtifacts + `, a chart of a registry with storage "helm" would not be verified: ` +
			`use storage "oci", or set ` + ofCharts + " of the cluster type, too"
	case !from.Has(Charts) || !requires(ofCharts):
		return ""
	case from.Has(OCI) && !requires(ofArtifacts):
		return "with " + ofCharts + `, a chart of storage "oci" would not be verified: set ` + ofArtifacts + " of the cluster type, too"
	case from.Has(Git) && !requires(ofGit):
		return "with " + ofCharts + `, a chart of storage "git" would not be verified: set ` + ofGit + " of the cluster type, too"
	case from.Has(Helm) && !isRegistry:
		return "with " + ofCharts + ", a chart of a chart repository would not be verified, " +
			"since Flux does so for registries alone: publish it in a registry (oci://)"
	}
	return ""
}
