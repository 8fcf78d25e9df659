package fleet

import (
	"cmp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Manifests locates a workload's own manifests.
type Manifests struct {
	folder.Manifests
	Type       string         `json:"type,omitempty"`
	Parameters map[string]any `json:"parameters,omitempty"`
	// ConfigAs, Render and AllowPlain belong to the deployment target.
	ConfigAs   ConfigAs `json:"config_as,omitempty"`
	Render     string   `json:"render,omitempty"`
	AllowPlain []string `json:"allow_plain,omitempty"` // sorted
}

var (
	storages      = []string{"git", "helm", "oci"}
	manifestTypes = []string{"helm", "kustomize"}
)

// storageAttributes are in addition to repo, type and parameters.
var storageAttributes = map[string][]string{
	"git":  {"branch", "tag", "commit", "path"},
	"helm": {"chart", "version"},
	"oci":  {"tag", "version", "digest", "path", "chart"},
}

var manifestsKind = defineKind(Table{
	Name:    "manifests",
	Meaning: "Where a workload's own manifests are, and how they are rendered.",
	Apart:   [][2]string{{"tag", "branch"}, {"tag", "commit"}, {"tag", "version"}},
}, func(m *Manifests) []row {
	return []row{
		textAttribute(&m.Storage, Attribute{
			Default: storages[0], Allowed: storages,
			Meaning: "Where they are: in a Git repository, in a chart repository, or as an OCI artifact.",
		}),
		textAttribute(&m.Repo, Attribute{Required: true, Meaning: "URL of the repository, without credentials."}),
		textAttribute(&m.Branch, Attribute{Meaning: "Branch, for `git`."}),
		textAttribute(&m.Tag, Attribute{Meaning: "Tag, for `git` and `oci`, in place of `branch`, `commit` and `version`."}),
		textAttribute(&m.Commit, Attribute{Meaning: "Commit, for `git`."}),
		textAttribute(&m.Path, Attribute{Meaning: "Path in the repository or artifact, for `git` and `oci`."}),
		textAttribute(&m.Chart, Attribute{Meaning: "Name of the chart, for `helm`, which requires it, and `oci`."}),
		textAttribute(&m.Version, Attribute{
			Meaning: "Version of the chart or artifact, or a range of versions, for `helm` and `oci`.",
		}),
		textAttribute(&m.Digest, Attribute{
			Meaning: "Digest of the artifact, `sha256:…`, for `oci`: the content never changes. A chart needs its exact `version` or " +
				"its `tag`, too.",
		}),
		textAttribute(&m.Type, Attribute{
			Allowed: manifestTypes,
			Meaning: "`helm` for a chart, `kustomize` for a kustomization or plain manifests. " +
				"Only a chart that is in Git, or at the `repo` of an OCI artifact, needs it. Unset: `helm` with `storage = \"helm\"` or " +
				"`chart`, else `kustomize`.",
		}),
		objectOfAnyShape(&m.Parameters, Attribute{
			Meaning: "They reach every field of what is rendered: see the guide \"Reference: rendered files, parameters, templates\".",
		}),
	}
}).checkedBy(checkManifests)

// readTargetManifests makes only the target's manifests unknown.
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
	readContent(target, !inner.unknown)
}

func readManifests(o *ObjectReader) Manifests {
	m := manifestsKind.decode(o)
	o.Finish()
	return m
}

// https://fluxcd.io/flux/components/source/
func checkManifests(o *ObjectReader, m *Manifests) {
	texts := []struct {
		attribute, text string
		check           func(string) string
	}{
		{"branch", m.Branch, checkRef}, {"tag", m.Tag, checkTag[m.Storage]}, {"commit", m.Commit, nil}, {"path", m.Path, checkSourcePath},
		{"chart", m.Chart, checkChart}, {"version", m.Version, checkVersion}, {"digest", m.Digest, checkDigest},
	}
	set := map[string]bool{}
	for _, t := range texts {
		if !isSet(t.text) {
			continue
		}
		set[t.attribute] = true
		if allowed, known := storageAttributes[m.Storage]; known && !slices.Contains(allowed, t.attribute) {
			o.Report(t.attribute, "does not fit storage %q, which takes %s", m.Storage, strings.Join(allowed, ", "))
		}
		problem := ""
		if t.check != nil {
			problem = t.check(t.text)
		}
		if problem != "" {
			o.Report(t.attribute, "%q %s", t.text, problem)
		} else if err := folder.CheckText(t.text); err != nil {
			o.Report(t.attribute, "%s", err)
		}
	}
	for _, pair := range o.table.Apart {
		if set[pair[0]] && set[pair[1]] {
			o.Report(pair[0], "cannot be set together with %s: give one of the two", pair[1])
		}
	}
	if m.Type == "kustomize" && (m.Storage == "helm" || isSet(m.Chart)) {
		o.Report("type", `"kustomize" does not fit a chart: leave it out`)
	}
	if m.Storage == "helm" && m.Chart == "" {
		o.Report("chart", `is required with storage "helm"`)
	}
	checkDigestVersion(o, m)
	if !isSet(m.Repo) {
		return
	}
	if problem := checkManifestsRepo(m.Storage, m.Repo, m.Chart); problem != "" {
		o.Report("repo", "%s", problem)
	} else if folder.CheckText(m.Repo) != nil { // the error would repeat a possible secret
		o.Report("repo", "has a character that is not shown, or is longer than %d bytes", folder.MaxText)
	}
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

// readAnyObject returns nil if the object is absent, empty or unknown.
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

// ConfigAs lists the forms in which a deployment target gets its configuration:
//
//	"configmap"        the file of the config template, a ConfigMap unless the cluster type says otherwise
//	"configmap:<name>" the same, with another name than "platform-config"
//	"values"           among the Helm values of a chart
//	"values:<key>"     the same, below a key; "a.b" is key b of key a
//	"substitute"       values that Flux substitutes for variables in the manifests
//	"secret"           the Secret with the referenced secrets, "platform-secrets"
//	"secret:<name>"    the same, with another name
//
// The list is sorted, and empty for the default, ["configmap"].
type ConfigAs []string

var configForms = []string{"configmap", "configmap:", "values", "values:", "substitute", "secret", "secret:"}

// ConfigMap reports whether the ConfigMap is written, and its name; "" is the default.
func (c ConfigAs) ConfigMap() (name string, written bool) {
	if len(c) == 0 {
		return "", true
	}
	return c.form("configmap")
}

// Secret is the same for the Secret. A ConfigMap implies it: references are part of the configuration.
func (c ConfigAs) Secret() (name string, written bool) {
	if name, written = c.form("secret"); written {
		return name, true
	}
	_, written = c.ConfigMap()
	return "", written
}

// Values reports whether a chart's values include the configuration, and below which keys.
func (c ConfigAs) Values() (below []string, among bool) {
	key, among := c.form("values")
	if key != "" {
		below = strings.Split(key, ".")
	}
	return below, among
}

// IsSubstituted reports whether Flux substitutes configuration for variables.
func (c ConfigAs) IsSubstituted() bool {
	return slices.Contains(c, "substitute")
}

func (c ConfigAs) form(name string) (rest string, found bool) {
	for _, form := range c {
		before, after, _ := strings.Cut(form, ":")
		if before == name {
			return after, true
		}
	}
	return "", false
}

// longestKeys bounds nested keys, which grow the output quadratically.
const longestKeys = 253

func readConfigAs(o *ObjectReader, attribute string) ConfigAs {
	forms := readSortedTexts(o, attribute)
	if given, isList := o.fields[attribute].([]any); isList && len(given) == 0 {
		o.Report(attribute, `is empty: give at least one form, or remove it for ["configmap"]`)
	}
	seen := map[string]bool{}
	for _, form := range forms {
		if form == unknownText {
			continue
		}
		name, rest, hasRest := strings.Cut(form, ":")
		known := name
		if hasRest {
			known += ":"
		}
		switch {
		case !slices.Contains(configForms, known):
			o.Report(attribute, `%q is not one of configmap, configmap:<name>, values, values:<key>, substitute, secret, secret:<name>%s`,
				form, DidYouMean(name, []string{"configmap", "values", "substitute", "secret"}))
		case hasRest && (name == "configmap" || name == "secret"):
			if problem := CheckSubdomainName(rest); problem != "" {
				o.Report(attribute, "%q: the name of the %s %s", form, map[string]string{"configmap": "ConfigMap", "secret": "Secret"}[name], problem)
			}
		case len(rest) > longestKeys:
			o.Report(attribute, "%q: the keys are longer than %d characters", strings.ToValidUTF8(form[:longestKeys], "")+"…", longestKeys)
		case hasRest && slices.Contains(strings.Split(rest, "."), ""):
			o.Report(attribute, "%q: a key is empty", form)
		}
		if seen[name] {
			o.Report(attribute, "%q appears twice", name)
		}
		seen[name] = true
	}
	if len(forms) == 1 && forms[0] == "configmap" {
		return nil
	}
	return forms
}

// Degrees of rendering.
const (
	RenderPointers = "pointers"
	RenderPreview  = "preview"
	RenderObjects  = "objects"
)

// Renderings is in order of strength.
var Renderings = []string{RenderPointers, RenderPreview, RenderObjects}

// WeakensRendering reports less rendering than the cluster type demands and the workspace allows.
func WeakensRendering(clusterType *ClusterType, target *DeploymentTarget, workspace *Workspace) bool {
	strength := func(render string) int { return slices.Index(Renderings, render) }
	demanded := cmp.Or(clusterType.Render, RenderPointers)
	least := min(strength(demanded), strength(cmp.Or(workspace.LeastRender, demanded)))
	return strength(RenderingOf(clusterType, target)) < least
}

// RenderingOf prefers the deployment target's own rendering.
func RenderingOf(clusterType *ClusterType, target *DeploymentTarget) string {
	return cmp.Or(target.Manifests.Render, clusterType.Render, RenderPointers)
}
