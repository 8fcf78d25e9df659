package origin

import (
	"bytes"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

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
