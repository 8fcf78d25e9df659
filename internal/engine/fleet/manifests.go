package fleet

import (
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// storageAttributes lists the attributes of each storage in addition to repo, type and parameters.
var storageAttributes = map[string][]string{
	"git":  {"branch", "tag", "commit", "path"},
	"helm": {"chart", "version"},
	"oci":  {"tag", "version", "digest", "path", "chart"},
}

// readTargetManifests reads manifests. An unknown value makes only the target's manifests unknown.
func readTargetManifests(o *ObjectReader, target *DeploymentTarget, decode func(*ObjectReader) Manifests) {
	value, path := o.Value("manifests")
	if o.Require("manifests", "is required"); value == nil {
		return
	}
	inner, isUnknown := o.reader.object(tableIn(o, "manifests"), path, value)
	target.ManifestsPending = isUnknown
	if inner == nil {
		return
	}
	target.Manifests = decode(inner)
	if target.ManifestsPending = inner.unknown; inner.unknown {
		target.Manifests = Manifests{}
	}
}

// readManifests checks that the attributes fit the storage: see https://fluxcd.io/flux/components/source/.
func readManifests(o *ObjectReader) Manifests {
	m := Manifests{
		Manifests: folder.Manifests{Storage: readOneOf(o, "storage"), Repo: readRequired(o, "repo")},
		Type:      readOneOfOrNone(o, "type"),
	}
	set := map[string]string{}
	for _, attribute := range []string{"branch", "tag", "commit", "path", "chart", "version", "digest"} {
		set[attribute] = readText(o, attribute)
		allowed, known := storageAttributes[m.Storage]
		if isSet(set[attribute]) && known && !slices.Contains(allowed, attribute) {
			o.Report(attribute, "does not fit storage %q, which takes %s", m.Storage, strings.Join(allowed, ", "))
		}
	}
	m.Branch, m.Tag, m.Commit = set["branch"], set["tag"], set["commit"]
	m.Path, m.Chart, m.Version, m.Digest = set["path"], set["chart"], set["version"], set["digest"]
	for _, pair := range manifestsTable.Apart {
		if isSet(set[pair[0]]) && isSet(set[pair[1]]) {
			o.Report(pair[0], "cannot be set together with %s: give one of the two", pair[1])
		}
	}
	if m.Type == "kustomize" && (m.Storage == "helm" || isSet(m.Chart)) {
		o.Report("type", `"kustomize" does not fit a chart: leave it out`)
	}
	if m.Storage == "helm" && m.Chart == "" {
		o.Report("chart", `is required with storage "helm"`)
	}
	checkDigestVersion(o, &m)
	if isSet(m.Repo) {
		if problem := checkManifestsRepo(m.Storage, m.Repo, m.Chart); problem != "" {
			o.Report("repo", "%s", problem)
		} else if folder.CheckText(m.Repo) != nil { // its error would repeat a possible secret
			o.Report("repo", "has a character that is not shown, or is longer than %d bytes", folder.MaxText)
		}
	}
	anything := func(string) string { return "" }
	for _, check := range []struct {
		attribute string
		problem   func(string) string
	}{
		{"branch", checkRef}, {"tag", checkTag(m.Storage)}, {"commit", anything}, {"path", checkSourcePath}, {"chart", checkChart},
		{"version", checkVersion}, {"digest", checkDigest},
	} {
		text := set[check.attribute]
		if !isSet(text) {
			continue
		}
		if problem := check.problem(text); problem != "" {
			o.Report(check.attribute, "%q %s", text, problem)
		} else if err := folder.CheckText(text); err != nil {
			o.Report(check.attribute, "%s", err)
		}
	}
	m.Parameters = readAnyObject(o, "parameters")
	o.Finish()
	return m
}

func checkDigestVersion(o *ObjectReader, m *Manifests) {
	if !isSet(m.Digest) {
		return
	}
	if isSet(m.Version) && !artifact.IsVersion(m.Version) {
		o.Report("version", "must be an exact version with digest, such as \"1.2.3\", since a range names other content")
	}
	if (m.Chart != "" || m.Type == "helm") && m.Version == "" && m.Tag == "" {
		o.Report("digest", "needs the exact version or the tag of the chart, too: some reconcilers fetch charts by version only")
	}
}

// readAnyObject reads a free-form object; nil if absent, empty or unknown.
func readAnyObject(o *ObjectReader, attribute string) map[string]any {
	switch value := o.value(attribute, AnyObjectType).(type) {
	case nil:
	case map[string]any:
		if !IsKnown(value) {
			o.noteUnknown()
			return nil
		}
		if len(value) == 0 {
			return nil
		}
		canonical, err := Canonical(value)
		if err != nil {
			o.Report(attribute, "%s", err)
			return nil
		}
		return canonical.(map[string]any)
	default:
		o.Report(attribute, "must be an object, not %s", kindOf(value))
	}
	return nil
}
