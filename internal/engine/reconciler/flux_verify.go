package reconciler

import (
	"strings"
)

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
