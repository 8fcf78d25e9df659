package origin

import (
	"bufio"
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// The largest public index.yaml has 20 MiB and 15,000 versions.
const (
	maxIndex    = 32 << 20 // bytes, unpacked
	maxPacked   = 8 << 20  // compressed bytes of all charts
	maxCharts   = 20_000
	maxVersions = 20_000 // per chart
	maxChart    = 128    // bytes of a name
	// maxParsed bounds the text of the YAML parser, whose tree takes up to 300 times as much memory.
	maxParsed = 256 << 10
)

// chartIndex keeps compressed texts of a large index.yaml and parses one version at a time, because its tree would take
// hundreds of times its size.
type chartIndex struct {
	parsed map[string][]chartVersion // small index
	packed map[string][]byte         // large index: text by chart
	isJSON bool                      // of packed; YAML otherwise
	size   int64                     // bytes in packed
	// isElsewhere: a redirect led to another server, whose text errors must not repeat.
	isElsewhere bool
}

type chartVersion struct {
	Version string   `json:"version" yaml:"version"`
	Digest  string   `json:"digest"  yaml:"digest"`
	URLs    []string `json:"urls"    yaml:"urls"`
}

func (i *chartIndex) names() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(i.parsed)), maps.Keys(i.packed))
}

// versions returns the versions of a chart, if the index has it.
func (i *chartIndex) versions(ctx context.Context, chart string) (versions []chartVersion, has bool, err error) {
	if versions, has = i.parsed[chart]; has {
		return versions, true, nil
	}
	packed, has := i.packed[chart]
	if !has {
		return nil, false, nil
	}
	read := yamlVersions
	if i.isJSON {
		read = jsonVersions
	}
	if versions, err = read(ctx, chart, flate.NewReader(bytes.NewReader(packed))); err != nil && ctx.Err() == nil {
		err = fmt.Errorf("its index.yaml: chart %q: %w", chart, err)
	}
	return versions, true, err
}

// readIndex needs bounded memory. The caller bounds the length of text.
func readIndex(text io.Reader) (*chartIndex, error) {
	start, err := io.ReadAll(io.LimitReader(text, maxParsed+1))
	if err != nil {
		return nil, err
	}
	start = bytes.TrimPrefix(start, []byte("\ufeff"))
	if len(start) <= maxParsed {
		return parseIndex(start)
	}
	index := &chartIndex{packed: map[string][]byte{}}
	whole := bufio.NewReaderSize(io.MultiReader(bytes.NewReader(start), text), 64<<10)
	if trimmed := bytes.TrimLeft(start, " \t\r\n"); len(trimmed) > 0 && trimmed[0] == '{' {
		index.isJSON = true
		err = index.splitJSON(whole)
	} else {
		err = index.splitYAML(whole)
	}
	return index, err
}

func parseIndex(text []byte) (*chartIndex, error) {
	var index struct {
		Entries map[string][]chartVersion `yaml:"entries"`
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("its index.yaml cannot be read: %w", shortYAMLError(err))
	}
	return &chartIndex{parsed: index.Entries}, nil
}

// shortYAMLError keeps only the first of many mistakes.
func shortYAMLError(err error) error {
	if all, ok := errors.AsType[*yaml.TypeError](err); ok && len(all.Errors) > 0 {
		err = errors.New(all.Errors[0])
	}
	return errors.New(wording.Cut(wording.OneLine(err.Error()), 200))
}

// errForm reports a large index that cannot be split.
func errForm(line int) error {
	return fmt.Errorf(
		"its index.yaml has more than %d KiB, and is neither JSON nor divided into lines as `helm repo index` divides it (line %d): "+
			"let `helm repo index` write it", maxParsed>>10, line)
}

type packer struct {
	index  *chartIndex
	name   string // current chart; "" for none
	buffer bytes.Buffer
	writer *flate.Writer
}

func newPacker(index *chartIndex) *packer {
	p := &packer{index: index}
	p.writer, _ = flate.NewWriter(&p.buffer, flate.BestSpeed) // the level is valid
	return p
}

// begin starts a chart.
func (p *packer) begin(name string) error {
	if err := p.end(); err != nil {
		return err
	}
	switch _, has := p.index.packed[name]; {
	case has:
		return fmt.Errorf("its index.yaml has chart %.100q twice", name)
	case len(name) > maxChart:
		return fmt.Errorf("%w: its index.yaml has a chart whose name has more than %d bytes", git.ErrTooLarge, maxChart)
	case len(p.index.packed) == maxCharts:
		return fmt.Errorf("%w: its index.yaml has more than %d charts", git.ErrTooLarge, maxCharts)
	}
	p.name = name
	return nil
}

func (p *packer) add(text []byte) error {
	if p.name == "" {
		return nil
	}
	if _, err := p.writer.Write(text); err != nil {
		return err
	}
	if p.index.size+int64(p.buffer.Len()) > maxPacked {
		return fmt.Errorf("%w: its index.yaml has more than %d MiB, compressed", git.ErrTooLarge, maxPacked>>20)
	}
	return nil
}

func (p *packer) end() error {
	if p.name == "" {
		return nil
	}
	if err := p.writer.Close(); err != nil {
		return err
	}
	p.index.packed[p.name] = bytes.Clone(p.buffer.Bytes())
	p.index.size += int64(p.buffer.Len())
	p.buffer.Reset()
	p.writer.Reset(&p.buffer)
	p.name = ""
	return nil
}

func (i *chartIndex) splitJSON(text io.Reader) error {
	decoder, packer := json.NewDecoder(text), newPacker(i)
	seen := false
	err := eachMember(decoder, func(key string) error {
		if key != "entries" {
			return decoder.Decode(&json.RawMessage{})
		}
		if seen {
			return errors.New("it has entries twice")
		}
		seen = true
		return eachMember(decoder, func(chart string) error {
			var value json.RawMessage
			if err := decoder.Decode(&value); err != nil {
				return err
			}
			if err := packer.begin(chart); err != nil {
				return err
			}
			if err := packer.add(value); err != nil {
				return err
			}
			return packer.end()
		})
	})
	if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
		return fmt.Errorf("its index.yaml has more than %d KiB and begins as JSON, and cannot be read as such: %w", maxParsed>>10, err)
	}
	return err
}

// eachMember calls read, which must consume the value, with each key of an object.
func eachMember(decoder *json.Decoder, read func(key string) error) error {
	switch token, err := decoder.Token(); {
	case err != nil:
		return err
	case token == nil: // null
		return nil
	case token != json.Delim('{'):
		return errors.New("its index.yaml, or entries in it, is not an object")
	}
	for decoder.More() {
		token, err := decoder.Token()
		if err != nil {
			return err
		}
		if err := read(token.(string)); err != nil { // keys are always strings
			return err
		}
	}
	_, err := decoder.Token()
	return err
}

func jsonVersions(ctx context.Context, _ string, text io.Reader) ([]chartVersion, error) {
	decoder := json.NewDecoder(text)
	switch token, err := decoder.Token(); {
	case err != nil:
		return nil, err
	case token == nil: // null
		return nil, nil
	case token != json.Delim('['):
		return nil, errors.New("its versions are not a list")
	}
	var versions []chartVersion
	for decoder.More() {
		if err := mayGoOn(ctx, len(versions)); err != nil {
			return nil, err
		}
		var version chartVersion
		if err := decoder.Decode(&version); err != nil {
			return nil, err
		}
		versions = append(versions, version)
	}
	return versions, nil
}

func mayGoOn(ctx context.Context, count int) error {
	if count >= maxVersions {
		return fmt.Errorf("%w: it has more than %d versions", git.ErrTooLarge, maxVersions)
	}
	return ctx.Err()
}
