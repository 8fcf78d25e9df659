package renderer

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

const maxScanned = 64 << 10

// withoutValues removes values of the request and of Secrets from an error: libraries quote text.
func withoutValues(err error, request *objects.Request, t *tree) error {
	text := err.Error()
	if len(text) > 2*maxScanned {
		text = text[:maxScanned] + " ... " + text[len(text)-maxScanned:]
	}
	values := append(valuesOf(request), fileValues(t, request)...)
	return errors.New(secret.Unrepeated(text, placeIn(t), values...))
}

func valuesOf(request *objects.Request) (values []any) {
	values = append(values, request.Substitute)
	kustomize := request.Kustomize
	if h := request.Helm; h != nil {
		values = append(values, h.Values)
		for _, p := range h.Parameters {
			values = append(values, p.Value)
		}
		if h.After != nil {
			kustomize = h.After
		}
	}
	if k := kustomize; k != nil {
		values = append(values, k.Labels, k.Annotations, k.CommonLabels, k.CommonAnnotations)
		for _, p := range k.Patches {
			values = append(values, leavesOf(p.Patch))
		}
	}
	return values
}

func fileValues(t *tree, request *objects.Request) (values []any) {
	const largest = 1 << 20
	var valueFiles, generated []string
	if h := request.Helm; h != nil {
		for _, name := range h.ValueFiles {
			valueFiles = append(valueFiles, path.Join(request.Path, name))
		}
	}
	for _, name := range t.names {
		content := string(t.files[name])
		switch {
		case len(content) > largest:
		case slices.ContainsFunc(valueFiles, func(file string) bool { return name == file || strings.HasSuffix(name, "/"+file) }):
			values = append(values, leavesOf(content))
		case strings.Contains(content, "secretGenerator"):
			generated = append(generated, name)
			values = append(values, leavesOf(content))
		case secret.IsManifest(content):
			values = append(values, leavesOf(content))
		}
	}
	for _, name := range generated {
		for _, file := range t.names {
			if content := t.files[file]; len(content) <= largest && strings.Contains(string(t.files[name]), path.Base(file)) {
				values = append(values, leavesOf(string(content)))
			}
		}
	}
	return values
}

// publicFields have no secrets, and errors need them.
var publicFields = []string{
	"apiVersion", "kind", "name", "namespace", "path", "op", "from", "target", "resources", "behavior", "type", "files", "envs",
}

var (
	documentEnd = regexp.MustCompile(`(?m)^---.*$`)
	afterKey    = regexp.MustCompile(`(?m)^[^:=#\n]*[:=][ \t]*(\S.*)$`)
)

// leavesOf returns the values in YAML. In unreadable text, these are the rests of lines after a key.
func leavesOf(text string) (leaves []any) {
	for _, document := range documentEnd.Split(text, -1) {
		var value any
		if yaml.Unmarshal([]byte(document), &value) == nil {
			if _, isText := value.(string); !isText {
				leaves = append(leaves, withoutNames(value))
				continue
			}
		}
		for _, match := range afterKey.FindAllStringSubmatch(document, -1) {
			leaves = append(leaves, strings.Trim(match[1], `"'`))
		}
	}
	return leaves
}

func withoutNames(value any) any {
	private := deep.Without(value, func(name string, _ any) bool { return slices.Contains(publicFields, name) })
	return deep.Mapped(private, func(part any) any {
		text, _ := part.(string)
		if _, after, isEntry := strings.Cut(text, "="); isEntry { // a literal of a generator
			return []any{text, after}
		}
		return part
	})
}

// placeIn matches files, template fields, and charts by name.
func placeIn(t *tree) *regexp.Regexp {
	places := []string{`at <\.[\w.$]*>`}
	for _, name := range t.names {
		if path.Base(name) == "Chart.yaml" {
			places = append(places, chartNames(t.files[name])...)
		}
		if strings.Contains(name, "/") {
			places = append(places, regexp.QuoteMeta(name))
		}
		if _, inner, has := strings.Cut(name, "templates/"); has {
			places = append(places, `[\w./-]+/templates/`+regexp.QuoteMeta(inner))
		}
	}
	return regexp.MustCompile(strings.Join(places, "|"))
}

// chartNames returns patterns of phrases with the names of a chart and its dependencies.
func chartNames(chart []byte) (patterns []string) {
	type named struct{ Name, Repository string }
	var about struct {
		named
		Dependencies []named
	}
	if yaml.Unmarshal(chart, &about) != nil {
		return nil
	}
	for _, one := range append(about.Dependencies, about.named) {
		if one.Name != "" {
			patterns = append(patterns, fmt.Sprintf(`(chart "|depends on |" of )%s([\s",]|$)`, regexp.QuoteMeta(one.Name)))
		}
		if strings.HasPrefix(one.Repository, "file://") {
			patterns = append(patterns, "at "+regexp.QuoteMeta(one.Repository))
		}
	}
	return patterns
}
