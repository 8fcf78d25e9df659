package renderer

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/loader/archive"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	chartutil "helm.sh/helm/v4/pkg/chart/v2/util"
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// loadedChart is shared by requests. Each renders a copy, because rendering changes charts.
type loadedChart struct {
	chart         *chart.Chart
	schemas       schemas
	mentionsState bool // a template can detect an upgrade
}

func chartFolder(t *tree, folder string) (string, error) {
	if _, has := t.files[path.Join(folder, "Chart.yaml")]; has {
		return folder, nil
	}
	if folder != "." {
		return "", fmt.Errorf("folder %q has no Chart.yaml, so it is no chart", folder)
	}
	var found []string
	for _, name := range t.names {
		if path.Base(name) == "Chart.yaml" && strings.Count(name, "/") == 1 {
			found = append(found, path.Dir(name))
		}
	}
	if len(found) != 1 {
		return "", errors.New("it has no Chart.yaml at its root, so it is no chart")
	}
	return found[0], nil
}

// maxChartFile is the limit of Helm 3, which Argo CD uses.
const maxChartFile = 5 << 20

// loadChart reads a chart once, with its dependencies, which packed charts contain.
func loadChart(t *tree, folder string, isPacked bool) (*loadedChart, error) {
	if known := t.charts[folder]; known != nil {
		return known, nil
	}
	loaded, err := readChart(t, folder, isPacked)
	if err != nil {
		return nil, err
	}
	if loaded.Metadata.Type == "library" {
		return nil, fmt.Errorf("chart %q is a library, which reconcilers do not install: point to a chart that depends on it", loaded.Name())
	}
	if !isPacked {
		if err := addLocalDependencies(t, folder, loaded); err != nil {
			return nil, err
		}
	}
	if err := checkDependencies(loaded); err != nil {
		return nil, err
	}
	sortDependencies(loaded)
	t.charts[folder] = &loadedChart{loaded, schemas{}, chartMentionsState(loaded)}
	return t.charts[folder], nil
}

func readChart(t *tree, folder string, isPacked bool) (*chart.Chart, error) {
	rules := ignore.Empty()
	if content, has := t.files[path.Join(folder, ignore.HelmIgnore)]; has && !isPacked {
		read, err := ignore.Parse(bytes.NewReader(content))
		if err != nil {
			return nil, fmt.Errorf(".helmignore: %w", err)
		}
		rules = read
	}
	rules.AddDefaults()
	var files []*archive.BufferedFile
	for _, name := range t.filesBelow(folder) {
		if !isPacked && isIgnored(rules, name) {
			continue
		}
		content, err := t.read(path.Join(folder, name))
		if err != nil {
			return nil, err
		}
		if len(content) > maxChartFile {
			return nil, fmt.Errorf("file %q has more than %d MiB", name, maxChartFile>>20)
		}
		files = append(files, &archive.BufferedFile{Name: name, Data: trimByteOrderMark(content)})
	}
	return loader.LoadFiles(files)
}

// addLocalDependencies adds file:// dependencies, as agents do. They must contain their own.
func addLocalDependencies(t *tree, folder string, to *chart.Chart) error {
	for _, wanted := range to.Metadata.Dependencies {
		below, isLocal := strings.CutPrefix(wanted.Repository, "file://")
		if !isLocal || hasDependency(to, wanted.Name) {
			continue
		}
		at := path.Join(folder, below)
		if path.IsAbs(below) || leavesRoot(at) {
			return fmt.Errorf("chart %q depends on %s at %s, which is outside of the artifact", to.Name(), wanted.Name, wanted.Repository)
		}
		if _, has := t.files[path.Join(at, "Chart.yaml")]; !has {
			return fmt.Errorf("chart %q depends on %s at %s, where there is no chart: %w", to.Name(), wanted.Name, wanted.Repository,
				t.missingFile(path.Join(at, "Chart.yaml")))
		}
		dependency, err := readChart(t, at, false)
		if err != nil {
			return fmt.Errorf("chart %q depends on %s at %s: %w", to.Name(), wanted.Name, wanted.Repository, err)
		}
		if !chartutil.IsCompatibleRange(wanted.Version, dependency.Metadata.Version) {
			return fmt.Errorf("chart %q depends on version %q of %s, and the one at %s has %q", to.Name(), wanted.Version, wanted.Name,
				wanted.Repository, dependency.Metadata.Version)
		}
		to.AddDependency(dependency)
	}
	return nil
}

func hasDependency(c *chart.Chart, name string) bool {
	return slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return d.Name() == name })
}

func isIgnored(rules *ignore.Rules, name string) bool {
	folder := (&tar.Header{Typeflag: tar.TypeDir}).FileInfo() // rules use only IsDir
	for i, b := range name {
		if b == '/' && rules.Ignore(name[:i], folder) {
			return true
		}
	}
	return rules.Ignore(name, (&tar.Header{}).FileInfo())
}

// checkDependencies refuses dependencies that Helm would have to fetch.
func checkDependencies(c *chart.Chart) error {
	var missing []string
	for _, wanted := range c.Metadata.Dependencies {
		if !hasDependency(c, wanted.Name) {
			missing = append(missing, wanted.Name)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("chart %q depends on %s, which its folder charts does not have: add it there (`helm dependency update`), "+
			"or take the chart from a chart repository", c.Name(), strings.Join(missing, ", "))
	}
	for _, dependency := range c.Dependencies() {
		if err := checkDependencies(dependency); err != nil {
			return err
		}
	}
	return nil
}

// sortDependencies removes Helm's random order.
func sortDependencies(c *chart.Chart) {
	all := slices.Clone(c.Dependencies())
	slices.SortStableFunc(all, func(a, b *chart.Chart) int {
		return strings.Compare(a.Name()+"\n"+a.Metadata.Version, b.Name()+"\n"+b.Metadata.Version)
	})
	c.SetDependencies(all...)
	for _, dependency := range all {
		sortDependencies(dependency)
	}
}

func copyChart(c *chart.Chart) *chart.Chart {
	metadata := *c.Metadata
	metadata.Dependencies = make([]*chart.Dependency, len(c.Metadata.Dependencies))
	for i, d := range c.Metadata.Dependencies {
		dependency := *d
		metadata.Dependencies[i] = &dependency
	}
	metadata.Annotations = maps.Clone(c.Metadata.Annotations)
	values, _ := deep.Copy(c.Values).(map[string]any)
	copied := &chart.Chart{Metadata: &metadata, Lock: c.Lock, Templates: c.Templates, Values: values, Schema: c.Schema, Files: c.Files}
	for _, dependency := range c.Dependencies() {
		copied.AddDependency(copyChart(dependency))
	}
	return copied
}

// schemas caches compiled schemas by their text.
type schemas map[string]*valuesSchema

type valuesSchema struct {
	compiled *jsonschema.Schema // nil if it does not compile without remote
	remote   []string           // addresses of remote schemas
}

// validate follows Helm's ValidateAgainstSchema, but loads no schemas and returns their addresses.
func (s schemas) validate(c *chart.Chart, values common.Values) (remote []objects.RemoteSchema, err error) {
	var mistakes []error
	if c.Schema != nil {
		addresses, err := s.validateOne(c, values)
		if err != nil {
			mistakes = append(mistakes, fmt.Errorf("the values are not what values.schema.json of chart %q wants: %w", c.Name(), err))
		}
		for _, address := range addresses {
			remote = append(remote, objects.RemoteSchema{Chart: c.Name(), URL: address})
		}
	}
	for _, dependency := range c.Dependencies() {
		var of common.Values
		switch given := values[dependency.Name()].(type) {
		case nil:
			continue
		case map[string]any:
			of = given
		case common.Values:
			of = given
		default:
			mistakes = append(mistakes, fmt.Errorf("the values of chart %q are no map, but %T", dependency.Name(), given))
			continue
		}
		further, err := s.validate(dependency, of)
		remote, mistakes = append(remote, further...), append(mistakes, err)
	}
	return remote, errors.Join(mistakes...)
}

func (s schemas) validateOne(c *chart.Chart, values common.Values) (remote []string, err error) {
	schema := s[string(c.Schema)]
	if schema == nil {
		if schema, err = compileSchema(c.Schema); err != nil {
			return nil, err
		}
		s[string(c.Schema)] = schema
	}
	if schema.compiled == nil {
		return schema.remote, nil
	}
	// Values may have types that JSON lacks.
	text, err := json.Marshal(values)
	if err != nil {
		return nil, err
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	return schema.remote, schema.compiled.Validate(plain)
}

func compileSchema(text []byte) (*valuesSchema, error) {
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	const address = "file:///values.schema.json"
	schema, compiler := &valuesSchema{}, jsonschema.NewCompiler()
	compiler.UseLoader(schemaLoader{schema})
	if err := compiler.AddResource(address, document); err != nil {
		return nil, err
	}
	if schema.compiled, err = compiler.Compile(address); err != nil && schema.remote == nil {
		return nil, err
	}
	return schema, nil
}

// schemaLoader replaces remote schemas by ones that accept everything.
type schemaLoader struct{ of *valuesSchema }

const (
	maxSchemaAddress   = 500 // bytes
	maxSchemaAddresses = 20
)

func (l schemaLoader) Load(url string) (any, error) {
	switch {
	case strings.HasPrefix(url, "urn:"):
		return true, nil // as Helm does
	case strings.HasPrefix(url, "https://"), strings.HasPrefix(url, "http://"):
		if len(l.of.remote) < maxSchemaAddresses {
			l.of.remote = append(l.of.remote, wording.CutMiddle(wording.Visible(url), maxSchemaAddress))
		}
		return true, nil
	}
	return nil, fmt.Errorf("it refers to %s, which rendering does not read: take what it refers to into the schema", url)
}
