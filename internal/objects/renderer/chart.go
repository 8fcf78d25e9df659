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
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/flotilla/terraform-provider-flotilla/internal/deep"
)

// loadedChart is a chart that many requests render. Rendering changes a chart, so each works with a copy.
type loadedChart struct {
	chart         *chart.Chart
	schemas       schemas
	mentionsState bool // a template can tell an installation from an upgrade
}

// chartFolder is where the chart is: that of an archive is in a folder of its own.
func chartFolder(t *tree, folder string) (string, error) {
	if _, has := t.files[path.Join(folder, "Chart.yaml")]; has {
		return folder, nil
	}
	if folder == "." {
		var found []string
		for _, name := range t.names {
			if path.Base(name) == "Chart.yaml" && strings.Count(name, "/") == 1 {
				found = append(found, path.Dir(name))
			}
		}
		if len(found) == 1 {
			return found[0], nil
		}
	}
	if folder == "." {
		return "", errors.New("it has no Chart.yaml at its root, so it is no chart")
	}
	return "", fmt.Errorf("folder %q has no Chart.yaml, so it is no chart", folder)
}

// maxChartFile bounds each file of a chart. Helm 3, which Argo CD has, takes no larger one.
const maxChartFile = 5 << 20

// loadChart reads a chart. One in an archive was packed without what its .helmignore names.
func loadChart(t *tree, folder string, isPacked bool) (*loadedChart, error) {
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
	for _, name := range t.below(folder) {
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
		files = append(files, &archive.BufferedFile{Name: name, Data: withoutMark(content)})
	}
	loaded, err := loader.LoadFiles(files)
	if err != nil {
		return nil, err
	}
	if err := checkDependencies(loaded); err != nil {
		return nil, err
	}
	sortDependencies(loaded)
	return &loadedChart{loaded, schemas{}, chartMentionsState(loaded)}, nil
}

// isIgnored asks for a file and the folders that it is in.
func isIgnored(rules *ignore.Rules, name string) bool {
	folder := (&tar.Header{Typeflag: tar.TypeDir}).FileInfo() // rules ask only whether it is one
	for i, b := range name {
		if b == '/' && rules.Ignore(name[:i], folder) {
			return true
		}
	}
	return rules.Ignore(name, (&tar.Header{}).FileInfo())
}

// checkDependencies names the dependencies that are not in the folder charts. Helm would have to fetch them.
func checkDependencies(c *chart.Chart) error {
	var missing []string
	for _, wanted := range c.Metadata.Dependencies {
		has := slices.ContainsFunc(c.Dependencies(), func(d *chart.Chart) bool { return d.Name() == wanted.Name })
		if !has {
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

// sortDependencies undoes the order in which Helm reads them, which is that of a map.
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

// schemas are the compiled values.schema.json, by their text.
type schemas map[string]*jsonschema.Schema

// validate does what Helm's ValidateAgainstSchema does, without its loaders of files and of the network.
func (s schemas) validate(c *chart.Chart, values common.Values) error {
	var mistakes []error
	if c.Schema != nil {
		if err := s.validateOne(c, values); err != nil {
			mistakes = append(mistakes, fmt.Errorf("the values are not what values.schema.json of chart %q wants: %w", c.Name(), err))
		}
	}
	for _, dependency := range c.Dependencies() {
		switch of := values[dependency.Name()].(type) {
		case nil:
		case map[string]any:
			mistakes = append(mistakes, s.validate(dependency, of))
		case common.Values:
			mistakes = append(mistakes, s.validate(dependency, of))
		default:
			mistakes = append(mistakes, fmt.Errorf("the values of chart %q are no map, but %T", dependency.Name(), of))
		}
	}
	return errors.Join(mistakes...)
}

func (s schemas) validateOne(c *chart.Chart, values common.Values) error {
	schema := s[string(c.Schema)]
	if schema == nil {
		document, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Schema))
		if err != nil {
			return err
		}
		const address = "file:///values.schema.json"
		compiler := jsonschema.NewCompiler()
		compiler.UseLoader(noLoader{})
		if err := compiler.AddResource(address, document); err != nil {
			return err
		}
		if schema, err = compiler.Compile(address); err != nil {
			return err
		}
		s[string(c.Schema)] = schema
	}
	// Templates' values may have other types of numbers and texts than JSON has.
	text, err := json.Marshal(values)
	if err != nil {
		return err
	}
	plain, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		return err
	}
	return schema.Validate(plain)
}

// noLoader is asked for what a schema refers to beyond itself.
type noLoader struct{}

func (noLoader) Load(url string) (any, error) {
	if strings.HasPrefix(url, "urn:") {
		return true, nil // as Helm does
	}
	return nil, fmt.Errorf("it refers to %s, which rendering does not read: take what it refers to into the schema", url)
}
