package origin

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	exactjson "sigs.k8s.io/json"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// The largest public index.yaml has 20 MiB and 15,000 versions.
const (
	maxIndex   = 32 << 20 // bytes, unpacked
	maxPacked  = 8 << 20  // bytes of all charts, compressed
	maxEntries = 20_000   // charts, and versions of each
	maxChart   = 128      // bytes of a name
	// maxParsed bounds the text of the YAML parser, whose tree takes up to 300 times as much memory.
	maxParsed = 256 << 10
)

// chartIndex keeps the text of a large index.yaml and parses one version at a time, because its tree would take hundreds of
// times its size. The texts of charts are compressed: a process keeps the indexes of all repositories.
type chartIndex struct {
	parsed map[string][]chartVersion // small index
	charts map[string]block          // large index
	size   int                       // of the compressed charts
	packer *flate.Writer             // while the index is split
	isJSON bool                      // of charts; YAML otherwise
	// isElsewhere: a redirect led to another server, whose text errors must not repeat.
	isElsewhere bool
}

type chartVersion struct {
	Version string   `json:"version" yaml:"version"`
	Digest  string   `json:"digest"  yaml:"digest"`
	URLs    []string `json:"urls"    yaml:"urls"`
}

func (i *chartIndex) names() []string {
	return slices.AppendSeq(slices.Collect(maps.Keys(i.parsed)), maps.Keys(i.charts))
}

// versions returns the versions of a chart, if the index has it.
func (i *chartIndex) versions(ctx context.Context, chart string) (versions []chartVersion, has bool, err error) {
	if versions, has = i.parsed[chart]; has {
		return versions, true, nil
	}
	found, has := i.charts[chart]
	if !has {
		return nil, false, nil
	}
	read := yamlVersions
	if i.isJSON {
		read = jsonVersions
	}
	if found.text, err = io.ReadAll(flate.NewReader(bytes.NewReader(found.text))); err != nil {
		return nil, true, err
	}
	if versions, err = read(ctx, found); err != nil && ctx.Err() == nil {
		err = fmt.Errorf("its index.yaml: chart %q: %w", chart, err)
	}
	return versions, true, err
}

// readIndex needs little more memory than the text. The caller bounds its length.
func readIndex(from io.Reader) (*chartIndex, error) {
	text, err := io.ReadAll(from)
	if err != nil {
		return nil, err
	}
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if len(text) <= maxParsed {
		return parseIndex(text)
	}
	return splitIndex(text)
}

// splitIndex reads a large index.
func splitIndex(text []byte) (*chartIndex, error) {
	packer, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		return nil, err
	}
	index := &chartIndex{charts: map[string]block{}, packer: packer}
	defer func() { index.packer = nil }()
	split := index.splitYAML
	if index.isJSON = bytes.HasPrefix(bytes.TrimLeft(text, " \t\r\n"), []byte("{")); index.isJSON {
		split = index.splitJSON
	}
	if err := split(text); err != nil {
		return nil, err
	}
	return index, nil
}

func parseIndex(text []byte) (*chartIndex, error) {
	var index struct {
		Entries map[string][]chartVersion `yaml:"entries"`
	}
	if err := yaml.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("its index.yaml cannot be read: %w", shortYAMLError(err))
	}
	isTooMany := len(index.Entries) > maxEntries
	for _, versions := range index.Entries {
		isTooMany = isTooMany || len(versions) > maxEntries
	}
	if isTooMany {
		return nil, errTooManyEntries
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

var errTooManyEntries = fmt.Errorf("%w: its index.yaml has more than %d charts, or versions of one", git.ErrTooLarge, maxEntries)

// errForm reports a large index that cannot be split.
func errForm(line int) error {
	return fmt.Errorf(
		"its index.yaml has more than %d KiB, and is neither JSON nor divided into lines as `helm repo index` divides it (line %d): "+
			"let `helm repo index` write it", maxParsed>>10, line)
}

func (i *chartIndex) add(name string, chart block) error {
	switch _, has := i.charts[name]; {
	case has:
		return fmt.Errorf("its index.yaml has chart %.100q twice", name)
	case len(name) > maxChart:
		return fmt.Errorf("%w: its index.yaml has a chart whose name has more than %d bytes", git.ErrTooLarge, maxChart)
	case len(i.charts) == maxEntries:
		return errTooManyEntries
	}
	var packed bytes.Buffer
	i.packer.Reset(&packed)
	if _, err := i.packer.Write(chart.text); err != nil {
		return err
	}
	if err := i.packer.Close(); err != nil {
		return err
	}
	if i.size += packed.Len(); i.size > maxPacked {
		return fmt.Errorf("%w: its index.yaml has more than %d MiB, compressed", git.ErrTooLarge, maxPacked>>20)
	}
	chart.text = bytes.Clone(packed.Bytes())
	i.charts[name] = chart
	return nil
}

func (i *chartIndex) splitJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
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
			var versions json.RawMessage
			if err := decoder.Decode(&versions); err != nil {
				return err
			}
			return i.add(chart, block{text: versions})
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

func jsonVersions(ctx context.Context, chart block) ([]chartVersion, error) {
	decoder := json.NewDecoder(bytes.NewReader(chart.text))
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
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case len(versions) == maxEntries:
			return nil, errTooManyEntries
		}
		var text json.RawMessage
		if err := decoder.Decode(&text); err != nil {
			return nil, err
		}
		var version chartVersion
		if err := exactjson.UnmarshalCaseSensitivePreserveInts(text, &version); err != nil {
			return nil, err
		}
		versions = append(versions, version)
	}
	return versions, nil
}

// block is a member of an object, or an element of a list, in lines of its own.
type block struct {
	line  int    // number of its first line
	key   string // of a member
	value string // on the line of the key
	text  []byte
}

// body returns the lines below the key.
func (b *block) body() []byte {
	_, below, _ := bytes.Cut(b.text, []byte("\n"))
	return below
}

// blocksOf divides YAML in block style, which begins at a line: further lines of a block are deeper than its first, except the
// dashes of a list in a member. Parsing a block detects a wrong division. It ignores all documents but the first.
func blocksOf(text []byte, line int, isList bool) (blocks []block, err error) {
	indent, begin, end := 0, 0, 0 // of the current block; end moves with each line
	isOpen := false               // a document has begun
	for whole := range bytes.Lines(text) {
		content := bytes.TrimLeft(whole, " ")
		depth, isItem, hasBegun := len(whole)-len(content), hasMark(content, "-"), len(blocks) > 0
		isMarker := depth == 0 && (hasMark(content, "---") || hasMark(content, "..."))
		isDirective := depth == 0 && bytes.HasPrefix(content, []byte("%")) || isMarker && isBlank(content[len("---"):])
		switch {
		case bytes.Contains(bytes.TrimRight(content, "\r\n"), []byte("\r")): // ends a line in YAML, too
			return blocks, errForm(line)
		case isMarker && (hasBegun || isOpen):
			return blocks, nil
		case isBlank(content), !hasBegun && isDirective:
			isOpen = isOpen || isMarker
		case hasBegun && (depth > indent || depth == indent && isItem && !isList): // more of the block
		case hasBegun && depth < indent, isItem != isList:
			return blocks, errForm(line)
		case len(blocks) == maxEntries:
			return blocks, errTooManyEntries
		default:
			key, value, isKey := keyOnLine(content)
			if !isList && !isKey {
				return blocks, errForm(line)
			}
			indent, begin = depth, end
			blocks = append(blocks, block{line: line, key: key, value: value})
		}
		line++
		end += len(whole)
		if len(blocks) > 0 {
			blocks[len(blocks)-1].text = text[begin:end]
		}
	}
	return blocks, nil
}

func isBlank(text []byte) bool {
	text = bytes.TrimSpace(text)
	return len(text) == 0 || text[0] == '#'
}

// hasMark reports whether a text begins with a mark and a space.
func hasMark(text []byte, mark string) bool {
	rest, begins := bytes.CutPrefix(text, []byte(mark))
	return begins && (len(rest) == 0 || strings.IndexByte(" \t\r\n", rest[0]) >= 0)
}

// plainKey matches a key that needs no parser, and its value on the same line.
var plainKey = regexp.MustCompile(`^(?:([A-Za-z0-9_][A-Za-z0-9._+/-]*)|"([^"\\]*)"|'([^']*)')[ \t]*:(?:[ \t]+(.*))?$`)

// maxLine limits the bytes of a line that plainKey reads.
const maxLine = 64 << 10

func keyOnLine(text []byte) (key, value string, ok bool) {
	found := plainKey.FindSubmatch(bytes.TrimRight(text[:min(len(text), maxLine)], " \t\r\n"))
	if found == nil {
		return "", "", false
	}
	if !isBlank(found[4]) {
		value = string(found[4])
	}
	return string(slices.Concat(found[1], found[2], found[3])), value, true
}

// splitYAML splits an index in block style.
func (i *chartIndex) splitYAML(text []byte) error {
	members, err := blocksOf(text, 1, false)
	if err != nil {
		return err
	}
	var entries *block
	for m := range members {
		switch {
		case members[m].key != "entries":
			continue
		case entries != nil:
			return fmt.Errorf("its index.yaml has entries twice, in lines %d and %d", entries.line, members[m].line)
		}
		entries = &members[m]
	}
	switch {
	case entries == nil, slices.Contains([]string{"{}", "null", "~"}, entries.value):
		return nil
	case entries.value != "":
		return errForm(entries.line)
	}
	charts, err := blocksOf(entries.body(), entries.line+1, false)
	if err != nil {
		return err
	}
	for _, chart := range charts {
		if err := i.add(chart.key, chart); err != nil {
			return err
		}
	}
	return nil
}

// yamlVersions parses one version at a time, or the whole chart in another notation.
func yamlVersions(ctx context.Context, chart block) ([]chartVersion, error) {
	var blocks []block
	if chart.value == "" {
		var err error
		if blocks, err = blocksOf(chart.body(), chart.line+1, true); err != nil && len(blocks) > 0 {
			return nil, err
		}
	}
	if len(blocks) == 0 {
		var all map[string][]chartVersion
		err := chart.parse(&all)
		versions, has := all[chart.key]
		switch {
		case err != nil:
			return nil, err
		case !has || len(all) != 1:
			return nil, errForm(chart.line)
		case len(versions) > maxEntries:
			return nil, errTooManyEntries
		}
		return versions, nil
	}
	versions := make([]chartVersion, len(blocks))
	for i, version := range blocks {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var one []chartVersion
		if err := version.parse(&one); err != nil {
			return nil, err
		}
		if len(one) != 1 {
			return nil, errForm(version.line)
		}
		versions[i] = one[0]
	}
	return versions, nil
}

func (b *block) parse(into any) error {
	if len(b.text) > maxParsed {
		return fmt.Errorf("%w: the entry in line %d has more than %d KiB", git.ErrTooLarge, b.line, maxParsed>>10)
	}
	if err := yaml.Unmarshal(b.text, into); err != nil {
		return fmt.Errorf("the entry in line %d cannot be read: %w", b.line, shortYAMLError(err))
	}
	return nil
}
