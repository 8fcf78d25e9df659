package fleet

import (
	"slices"
	"strings"
)

// storageAttributes are the attributes that manifests of each storage may have, besides repo, type and parameters.
var storageAttributes = map[string][]string{
	"git":  {"branch", "tag", "commit", "path"},
	"helm": {"chart", "version"},
	"oci":  {"tag", "version", "path", "chart"},
}

// targetManifests reads the attribute "manifests" of a deployment target. An unknown value makes only the target's
// entry of manifests unknown.
func (o *object) targetManifests(target *DeploymentTarget, decode func(*object) Manifests) {
	o.read = append(o.read, "manifests")
	if o.fields["manifests"] == nil {
		o.report("manifests", "is required")
		return
	}
	inner, isUnknown := o.decoder.object(o.path.Attribute("manifests"), o.fields["manifests"])
	target.ManifestsPending = isUnknown
	if inner == nil {
		return
	}
	target.Manifests = decode(inner)
	if target.ManifestsPending = inner.unknown; inner.unknown {
		target.Manifests = Manifests{}
	}
}

// manifests reads manifests, and checks that their attributes fit the storage, see
// https://fluxcd.io/flux/components/source/ for each.
func (o *object) manifests() Manifests {
	m := Manifests{
		Storage: o.oneOf("storage", "git", Storages...),
		Repo:    o.required("repo"),
		Type:    o.text("type"),
	}
	set := map[string]string{}
	for _, attribute := range []string{"branch", "tag", "commit", "path", "chart", "version"} {
		set[attribute] = o.text(attribute)
		allowed, known := storageAttributes[m.Storage]
		if isSet(set[attribute]) && known && !slices.Contains(allowed, attribute) {
			o.report(attribute, "does not fit storage %q, which takes %s", m.Storage, strings.Join(allowed, ", "))
		}
	}
	m.Branch, m.Tag, m.Commit = set["branch"], set["tag"], set["commit"]
	m.Path, m.Chart, m.Version = set["path"], set["chart"], set["version"]
	for _, other := range []string{"branch", "commit", "version"} {
		if isSet(m.Tag) && isSet(set[other]) {
			o.report("tag", "cannot be set together with %s: give one of the two", other)
		}
	}
	if m.Storage == "helm" && m.Chart == "" {
		o.report("chart", `is required with storage "helm"`)
	}
	if isSet(m.Repo) {
		if problem := checkManifestsRepo(m.Storage, m.Repo); problem != "" {
			o.report("repo", "%s", problem)
		}
	}
	for _, check := range []struct {
		attribute string
		problem   func(string) string
	}{{"branch", checkRef}, {"tag", checkTag(m.Storage)}, {"path", checkSourcePath}, {"chart", checkChart}} {
		if text := set[check.attribute]; isSet(text) {
			if problem := check.problem(text); problem != "" {
				o.report(check.attribute, "%q %s", text, problem)
			}
		}
	}
	m.Parameters = o.anyObject("parameters")
	o.finish()
	return m
}

// anyObject reads an object with any attributes: nil where it is absent, empty or unknown.
func (o *object) anyObject(attribute string) map[string]any {
	switch value := o.value(attribute).(type) {
	case nil, Unknown:
	case map[string]any:
		if !IsKnown(value) {
			o.unknown = true
			return nil
		}
		if len(value) == 0 {
			return nil
		}
		canonical, err := Canonical(value)
		if err != nil {
			o.report(attribute, "%s", err)
			return nil
		}
		return canonical.(map[string]any)
	default:
		o.report(attribute, "must be an object, not %s", kindOf(value))
	}
	return nil
}
