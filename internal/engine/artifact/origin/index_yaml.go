package origin

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

type line struct {
	number int
	indent int
	text   []byte // with the line break; truncated to the buffer size
}

func (l line) isBlank() bool {
	text := bytes.TrimSpace(l.text)
	return len(text) == 0 || text[0] == '#'
}

func (l line) isItem() bool {
	return l.text[0] == '-' && (len(l.text) == 1 || strings.IndexByte(" \t\r\n", l.text[1]) >= 0)
}

// key matches a key that needs no parser.
var key = regexp.MustCompile(`^(?:([A-Za-z0-9_][A-Za-z0-9._+/-]*)|"([^"\\]*)"|'([^']*)')[ \t]*:(?:[ \t]+(.*))?$`)

// key returns the key and its value on this line.
func (l line) key() (name string, value []byte, ok bool) {
	found := key.FindSubmatch(bytes.TrimRight(l.text, " \t\r\n"))
	if found == nil {
		return "", nil, false
	}
	if value = found[4]; bytes.HasPrefix(value, []byte("#")) {
		value = nil
	}
	return string(slices.Concat(found[1], found[2], found[3])), value, true
}

// eachLine calls begin once for every line and add with its text, in pieces if it is long.
func eachLine(text *bufio.Reader, begin func(line) error, add func([]byte) error) error {
	number, isBeginning := 0, true
	for {
		piece, err := text.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) && !errors.Is(err, io.EOF) {
			return err
		}
		if isBeginning && len(piece) > 0 {
			number++
			rest := bytes.TrimLeft(piece, " ")
			if failed := begin(line{number, len(piece) - len(rest), rest}); failed != nil {
				return failed
			}
		}
		if failed := add(piece); failed != nil {
			return failed
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		isBeginning = err == nil
	}
}

var errEnd = errors.New("the document ends")

// splitYAML splits an index in block style: lines of a chart are deeper than its name, except the dashes of versions. Parsing
// a version later detects a wrong split.
func (i *chartIndex) splitYAML(text *bufio.Reader) error {
	s := &splitter{packer: newPacker(i)}
	if err := eachLine(text, s.begin, s.packer.add); err != nil && !errors.Is(err, errEnd) {
		return err
	}
	return s.packer.end()
}

type splitter struct {
	packer    *packer
	isInside  bool // within entries
	hasBegun  bool // a key was seen
	entriesAt int  // line of entries; 0 if not seen
	indent    int  // of chart names; 0 before the first
}

func (s *splitter) begin(l line) error {
	switch {
	case l.isBlank(), l.indent > 0 && !s.isInside:
		return nil
	case l.indent == 0:
		if err := s.packer.end(); err != nil {
			return err
		}
		return s.topLevel(l)
	case s.indent == 0:
		s.indent = l.indent
	}
	if isOfChart := l.indent > s.indent || l.indent == s.indent && l.isItem(); isOfChart {
		if s.packer.name == "" {
			return errForm(l.number)
		}
		return nil
	}
	name, _, isKey := l.key()
	if l.indent < s.indent || !isKey || name == "" {
		return errForm(l.number)
	}
	return s.packer.begin(name)
}

func (s *splitter) topLevel(l line) error {
	isMarker := bytes.HasPrefix(l.text, []byte("---")) || bytes.HasPrefix(l.text, []byte("..."))
	name, value, isKey := l.key()
	switch {
	case isMarker && s.hasBegun:
		return errEnd
	case isMarker:
		if rest := bytes.TrimSpace(l.text[3:]); len(rest) > 0 && rest[0] != '#' {
			return errForm(l.number)
		}
		return nil
	case l.text[0] == '%' && !s.hasBegun: // a directive
		return nil
	case l.isItem() && s.hasBegun && !s.isInside: // element of an unrelated list
		return nil
	case !isKey:
		return errForm(l.number)
	}
	s.hasBegun, s.isInside = true, false
	if name != "entries" {
		return nil
	}
	if s.entriesAt > 0 {
		return fmt.Errorf("its index.yaml has entries twice, in lines %d and %d", s.entriesAt, l.number)
	}
	s.entriesAt = l.number
	switch string(value) {
	case "":
		s.isInside = true
	case "{}", "null", "~":
	default:
		return errForm(l.number)
	}
	return nil
}

func yamlVersions(ctx context.Context, chart string, text io.Reader) (versions []chartVersion, err error) {
	u := &units{ctx: ctx, chart: chart}
	if err := eachLine(bufio.NewReaderSize(text, 64<<10), u.begin, u.add); err != nil {
		return nil, err
	}
	err = u.flush()
	return u.versions, err
}

// units feeds the parser one version at a time, or the whole chart in another notation.
type units struct {
	ctx      context.Context
	chart    string
	text     bytes.Buffer
	first    int  // line of text
	isItem   bool // text is a version
	indent   int  // of versions; 0 if they share a line
	isKnown  bool // indent is set
	versions []chartVersion
}

func (u *units) begin(l line) error {
	if l.number == 1 {
		_, value, _ := l.key()
		u.isKnown, u.first = len(value) > 0, 1
		return nil
	}
	if l.isBlank() {
		return nil
	}
	if !u.isKnown {
		u.isKnown = true
		if l.isItem() {
			u.indent = l.indent
			u.text.Reset() // chart name and comments
		}
	}
	if u.indent == 0 || l.indent > u.indent {
		return nil
	}
	if l.indent < u.indent || !l.isItem() {
		return fmt.Errorf("line %d of it does not begin a version", l.number)
	}
	if u.isItem {
		if err := u.flush(); err != nil {
			return err
		}
	}
	u.isItem, u.first = true, l.number
	return nil
}

func (u *units) add(piece []byte) error {
	if u.text.Len()+len(piece) > maxParsed {
		return fmt.Errorf("%w: a version of it (line %d of it) has more than %d KiB", git.ErrTooLarge, u.first, maxParsed>>10)
	}
	u.text.Write(piece)
	return nil
}

func (u *units) flush() error {
	if err := mayGoOn(u.ctx, len(u.versions)); err != nil {
		return err
	}
	defer u.text.Reset()
	if u.isItem {
		var one []chartVersion
		if err := yaml.Unmarshal(u.text.Bytes(), &one); err != nil {
			return fmt.Errorf("a version of it (line %d of it) cannot be read: %w", u.first, shortYAMLError(err))
		}
		if len(one) != 1 {
			return fmt.Errorf("line %d of it does not begin one version", u.first)
		}
		u.versions = append(u.versions, one[0])
		return nil
	}
	var all map[string][]chartVersion
	if err := yaml.Unmarshal(u.text.Bytes(), &all); err != nil {
		return fmt.Errorf("it cannot be read: %w", shortYAMLError(err))
	}
	versions, has := all[u.chart]
	if !has || len(all) != 1 || len(versions) > maxVersions {
		return fmt.Errorf("its text is not a list of at most %d versions", maxVersions)
	}
	u.versions = versions
	return nil
}
