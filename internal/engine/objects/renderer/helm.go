package renderer

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v4/pkg/chart/common"
	commonutil "helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/engine"
	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"helm.sh/helm/v4/pkg/strvals"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

// defaultKubernetes is the default of `helm template`.
const defaultKubernetes = "v1.37.0"

type manifest struct {
	file, hook, text string
	json             []byte // with Helm's final newline, which belongs to a text block
	isPlain          bool   // certainly no hook or mistake
}

// renderHelm follows `helm template`, and renders an upgrade, too, if the chart can detect one.
func renderHelm(ctx context.Context, t *tree, c *loadedChart, folder string, request *objects.Request, into *collector) error {
	release := helmRelease{chart: c, request: request, helm: request.Helm, missing: missingAPIs{}}
	defer func() { into.missing, into.remote = slices.Sorted(maps.Keys(release.missing)), release.remote }()
	if err := release.readValues(t, folder); err != nil {
		return err
	}
	manifests, err := release.manifests(ctx)
	if err != nil {
		return err
	}
	if !request.Helm.SkipCRDs {
		for _, crd := range release.rendered.CRDObjects() {
			for _, text := range releaseutil.SplitManifests(string(crd.File.Data)) {
				if err := into.add([]byte(text+"\n"), crd.Filename, "", objects.FromChart); err != nil {
					return err
				}
			}
		}
		for i := range into.objects {
			into.objects[i].IsCRD = true
		}
	}
	if err := into.addManifests(manifests); err != nil || !request.Helm.OnCluster || !release.readsState() {
		return err
	}
	release.isUpgrade = true
	if manifests, err = release.manifests(ctx); err != nil {
		return fmt.Errorf("as an upgrade: %w", err)
	}
	var upgraded collector
	if err := upgraded.addManifests(manifests); err != nil {
		return err
	}
	into.markOccasions(&upgraded)
	return nil
}

// manifests renders and post-renders. A chart with functions that depend on randomness, clock or cluster is rendered again,
// and a difference is an error: the cluster would get other objects.
func (r *helmRelease) manifests(ctx context.Context) ([]manifest, error) {
	used := r.newVariants(0, "")
	manifests, err := r.render(ctx, used)
	if err != nil {
		return nil, err
	}
	if calls := slices.Sorted(maps.Keys(used.called)); len(calls) > 0 {
		if err := r.compare(ctx, manifests, calls); err != nil {
			return nil, err
		}
	}
	if after := r.helm.After; after != nil {
		if manifests, err = postRender(manifests, after); err != nil {
			return nil, fmt.Errorf("the post-renderer: %w", err)
		}
	}
	return manifests, nil
}

type helmRelease struct {
	chart    *loadedChart
	request  *objects.Request
	helm     *objects.Helm
	values   map[string]any
	rendered *chart.Chart // dependencies selected by the values
	missing  missingAPIs
	remote   []objects.RemoteSchema

	isUpgrade bool
}

// readValues merges value files, values and parameters in this order.
func (r *helmRelease) readValues(t *tree, folder string) error {
	r.values = map[string]any{}
	for _, name := range r.helm.ValueFiles {
		full := path.Join(folder, name)
		if leavesRoot(full) || strings.Contains(name, "://") {
			return fmt.Errorf("value file %q is not in the artifact", name)
		}
		content, err := t.read(full)
		if errors.Is(err, os.ErrNotExist) && r.helm.IgnoreMissingValueFiles {
			continue
		}
		if err != nil {
			return fmt.Errorf("value file %q: %w", name, err)
		}
		values, err := loader.LoadValues(bytes.NewReader(trimByteOrderMark(content)))
		if err != nil {
			return fmt.Errorf("value file %q: %w", name, err)
		}
		r.values = loader.MergeMaps(r.values, values)
	}
	values, err := asHelmReads(r.helm.Values)
	if err != nil {
		return err
	}
	r.values = loader.MergeMaps(r.values, values)
	for _, isText := range []bool{false, true} {
		set := strvals.ParseInto
		if isText {
			set = strvals.ParseIntoString
		}
		for _, p := range r.helm.Parameters {
			if p.IsText != isText {
				continue
			}
			if err := set(p.Name+"="+escapeCommas(p.Value), r.values); err != nil {
				return fmt.Errorf("parameter %q: %w", p.Name, err)
			}
		}
	}
	return nil
}

func asHelmReads(values map[string]any) (map[string]any, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	var read map[string]any
	return read, json.Unmarshal(text, &read)
}

// escapeCommas spares lists in braces, as Argo CD does.
func escapeCommas(value string) string {
	if strings.HasPrefix(value, "{") && strings.HasSuffix(value, "}") {
		return value
	}
	var b strings.Builder
	for i := range len(value) {
		if value[i] == ',' && (i == 0 || value[i-1] != '\\') {
			b.WriteByte('\\')
		}
		b.WriteByte(value[i])
	}
	return b.String()
}

// render follows Helm's action.Install.
func (r *helmRelease) render(ctx context.Context, used *variants) ([]manifest, error) {
	c := copyChart(r.chart.chart)
	r.rendered = c
	if r.helm.VersionMetadata != "" {
		version, err := withBuild(c.Metadata.Version, r.helm.VersionMetadata)
		if err != nil {
			return nil, fmt.Errorf("the version %q of the chart: %w", c.Metadata.Version, err)
		}
		c.Metadata.Version = version
	}
	values := deep.Copy(r.values).(map[string]any) // templates and dependencies change values
	if err := chartutil.ProcessDependencies(c, values); err != nil {
		return nil, err
	}
	capabilities, err := r.capabilities()
	if err != nil {
		return nil, err
	}
	kubernetes := capabilities.KubeVersion
	if c.Metadata.KubeVersion != "" && !chartutil.IsCompatibleRange(c.Metadata.KubeVersion, kubernetes.String()) {
		return nil, fmt.Errorf("the chart requires Kubernetes %s, and the cluster type has %s", c.Metadata.KubeVersion, kubernetes.Version)
	}
	options := common.ReleaseOptions{Name: r.helm.ReleaseName, Namespace: r.helm.Namespace, Revision: 1, IsInstall: true}
	if r.isUpgrade {
		options.Revision, options.IsInstall, options.IsUpgrade = 2, false, true
	}
	all, err := commonutil.ToRenderValuesWithSchemaValidation(c, values, options, capabilities.Capabilities, true)
	if err != nil {
		return nil, err
	}
	all["Capabilities"] = capabilities
	if !r.helm.SkipSchema {
		if r.remote, err = r.chart.schemas.validate(c, all["Values"].(common.Values)); err != nil {
			return nil, err
		}
	}
	// The second rendering ignores fail and required: a chart that refuses a result renders no other object with it.
	files, err := engine.Engine{CustomTemplateFuncs: used.functions(), LintMode: used.variant == 1}.RenderWithContext(ctx, c, all)
	if err != nil {
		return nil, err
	}
	maps.DeleteFunc(files, func(name, _ string) bool { return strings.HasSuffix(name, "NOTES.txt") })
	size := 0
	for _, text := range files {
		if size += len(text); size > maxOutput {
			return nil, errOutput
		}
	}
	return readManifests(files, r.helm.SkipTests)
}

func readManifests(files map[string]string, skipTests bool) ([]manifest, error) {
	var manifests []manifest
	size := 0
	for _, file := range slices.Sorted(maps.Keys(files)) {
		if strings.HasPrefix(path.Base(file), "_") {
			continue
		}
		for _, text := range splitManifests(files[file]) {
			m := manifest{file: file, text: text}
			isDeployed, err := m.read(skipTests)
			if err != nil {
				return nil, err
			}
			if size += len(m.json); size > maxOutput {
				return nil, errOutput
			}
			if isDeployed {
				manifests = append(manifests, m)
			}
		}
	}
	return manifests, nil
}

// splitManifests spares Helm's slow search if the file has no separator.
func splitManifests(file string) []string {
	if !strings.Contains(file, "---") {
		if text := strings.TrimLeftFunc(file, unicode.IsSpace); text != "" {
			return []string{text}
		}
		return nil
	}
	split := releaseutil.SplitManifests(file)
	order := slices.Collect(maps.Keys(split))
	sort.Sort(releaseutil.BySplitManifestsOrder(order))
	texts := make([]string, len(order))
	for i, key := range order {
		texts[i] = split[key]
	}
	return texts
}

// read uses Helm's parser only for hooks and mistakes.
func (m *manifest) read(skipTests bool) (isDeployed bool, err error) {
	m.json, err = yaml.YAMLToJSON([]byte(m.text + "\n"))
	var head releaseutil.SimpleHead
	if err == nil && json.Unmarshal(m.json, &head) == nil {
		isHook := false
		if head.Metadata != nil {
			_, isHook = head.Metadata.Annotations[release.HookAnnotation]
		}
		if m.isPlain = !isHook; m.isPlain {
			return true, nil
		}
	}
	hooks, others, wrong := releaseutil.SortManifests(map[string]string{m.file: m.text}, nil, releaseutil.InstallOrder)
	switch {
	case wrong != nil:
		return false, wrong
	case err != nil:
		return false, fmt.Errorf("%s is not YAML: %w", m.file, err)
	case len(hooks) == 0:
		return len(others) > 0, nil // Helm skips unknown hooks
	case slices.Contains(hooks[0].Events, release.HookTest):
		m.hook = "test"
		return !skipTests, nil
	}
	m.hook = hookNames(hooks[0])
	return true, nil
}

func hookNames(h *release.Hook) string {
	names := make([]string, len(h.Events))
	for i, event := range h.Events {
		names[i] = event.String()
	}
	return strings.Join(names, ",")
}

// compare renders with other results and names a function with an effect.
func (r *helmRelease) compare(ctx context.Context, first []manifest, calls []string) error {
	all := r.findDifference(ctx, first, "")
	if all == nil {
		return nil
	}
	for _, function := range calls {
		if one := r.findDifference(ctx, first, function); one != nil {
			one.file = cmp.Or(one.file, all.file)
			return one.blame(function)
		}
	}
	return all.blame(strings.Join(calls, ", "))
}

type renderDifference struct {
	file string // "" if unknown
	err  error  // of the second rendering
}

func (d *renderDifference) blame(function string) error {
	file := cmp.Or(d.file, "of the chart")
	if d.err != nil {
		return fmt.Errorf("template %s is rendered once, and fails when rendered again with another result, as it uses the function %s (%w): "+
			"set a value with which it does not, such as the name of a secret that exists"+orLeave, file, function, d.err)
	}
	return fmt.Errorf("template %s renders something else each time, as it uses the function %s: set a value with which it does not, "+
		"such as the name of a secret that exists"+orLeave, file, function)
}

var templateName = regexp.MustCompile(`[^\s()":]+/templates/[^\s()":]+`)

// findDifference ignores comments, the order of fields, and objects that the agent skips.
func (r *helmRelease) findDifference(ctx context.Context, first []manifest, only string) *renderDifference {
	second, err := r.render(ctx, r.newVariants(1, only))
	if err != nil {
		return &renderDifference{templateName.FindString(err.Error()), err}
	}
	a, b := r.appliedByFile(first), r.appliedByFile(second)
	names := slices.Sorted(maps.Keys(a))
	names = append(names, slices.Sorted(maps.Keys(b))...)
	for _, name := range names {
		if a[name] != b[name] {
			return &renderDifference{file: name}
		}
	}
	return nil
}

func (r *helmRelease) appliedByFile(manifests []manifest) map[string]string {
	files := map[string]string{}
	for _, m := range manifests {
		var h head
		if string(m.json) == "null" || !m.isPlain && json.Unmarshal(m.json, &h) == nil && r.request.Hooks.LeaveOut(h.Metadata.Annotations) {
			continue
		}
		files[m.file] += string(m.json) + "\n"
	}
	return files
}

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
	for _, file := range slices.Concat(c.Templates, c.Files) { // templates can evaluate files
		if mentionsState(file.Data) {
			return true
		}
	}
	if values, err := json.Marshal(c.Values); err != nil || mentionsState(values) {
		return true
	}
	return slices.ContainsFunc(c.Dependencies(), chartMentionsState)
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
