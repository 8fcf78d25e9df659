package renderer

import (
	"encoding/json"
	"regexp"

	"github.com/Masterminds/semver/v3"
	chart "helm.sh/helm/v4/pkg/chart/v2"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// releaseFields matches .Release in templates. Its group has fields that all revisions share.
var releaseFields = regexp.MustCompile("[.\"`]Release\\b(\\.(?:Name|Namespace|Service)\\b)?")

// mentionsState reports whether templates can detect an upgrade.
func mentionsState(text []byte) bool {
	for _, found := range releaseFields.FindAllSubmatchIndex(text, -1) {
		if found[2] < 0 {
			return true
		}
	}
	return false
}

func chartMentionsState(c *chart.Chart) bool {
	for _, template := range c.Templates {
		if mentionsState(template.Data) {
			return true
		}
	}
	for _, file := range c.Files { // templates can evaluate files
		if mentionsState(file.Data) {
			return true
		}
	}
	if values, err := json.Marshal(c.Values); err != nil || mentionsState(values) {
		return true
	}
	for _, dependency := range c.Dependencies() {
		if chartMentionsState(dependency) {
			return true
		}
	}
	return false
}

func (r *helmRelease) readsState() bool {
	if r.chart.mentionsState {
		return true
	}
	values, err := json.Marshal(r.values)
	return err != nil || mentionsState(values)
}

// withBuild sets build metadata as Flux does.
func withBuild(version, metadata string) (string, error) {
	parsed, err := semver.NewVersion(version)
	if err != nil {
		return "", err
	}
	built, err := parsed.SetMetadata(metadata)
	return built.String(), err
}

func (c *collector) addManifests(manifests []manifest) error {
	for _, m := range manifests {
		if err := c.addJSON(m.json, m.file, m.hook, objects.FromChart); err != nil {
			return err
		}
	}
	return nil
}

// markOccasions marks objects that only an installation has. It adds objects that only the upgrade has.
func (c *collector) markOccasions(upgraded *collector) {
	type form struct{ hook, yaml string }
	of := func(o collected) form { return form{o.Hook, string(o.YAML)} }
	left := map[form]int{}
	for _, o := range upgraded.objects {
		left[of(o)]++
	}
	for i := range c.objects {
		o := &c.objects[i]
		switch {
		case o.IsCRD:
		case left[of(*o)] > 0:
			left[of(*o)]--
		default:
			o.On = objects.OnInstall
		}
	}
	for _, o := range upgraded.objects {
		if left[of(o)] > 0 {
			left[of(o)]--
			o.On = objects.OnUpgrade
			c.objects = append(c.objects, o)
		}
	}
	c.size = max(c.size, upgraded.size)
}
