package bounded_test

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
)

var errTooLong = errors.New("too long")

// closing notes that it was closed.
type closing struct {
	io.Reader
	closed bool
}

func (c *closing) Close() error {
	c.closed = true
	return nil
}

func TestABodyEndsWhereItIsTooLong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]error{"": nil, "abc": nil, "abcd": nil, "abcde": errTooLong, "abcdefgh": errTooLong} {
		for name, way := range map[string]func(io.Reader) io.Reader{
			"at once": func(from io.Reader) io.Reader { return from }, "byte by byte": iotest.OneByteReader, "with its end": iotest.DataErrReader,
		} {
			from := &closing{Reader: way(strings.NewReader(text))}
			body := bounded.Body(from, 4, errTooLong)
			read, err := io.ReadAll(body)
			if !errors.Is(err, want) || !strings.HasPrefix(text, string(read)) || len(read) > 5 || want == nil && string(read) != text {
				t.Errorf("%q %s: read %q, %v", text, name, read, err)
			}
			if n, err := body.Read(make([]byte, 1)); n > 0 || want != nil && !errors.Is(err, want) {
				t.Errorf("%q %s: after the end %d, %v", text, name, n, err)
			}
			if err := body.Close(); err != nil || !from.closed {
				t.Errorf("%q %s: not closed, %v", text, name, err)
			}
		}
	}
}

func TestALimitCanBeRaised(t *testing.T) {
	t.Parallel()
	reader := &bounded.Reader{From: strings.NewReader("abcdef"), Left: 2, TooLong: errTooLong}
	first, err := io.ReadAll(reader)
	if !errors.Is(err, errTooLong) {
		t.Fatal(err)
	}
	reader.Left = 10
	rest, err := io.ReadAll(reader)
	if text := string(first) + string(rest); err != nil || text != "abcdef" {
		t.Errorf("read %q, %v", text, err)
	}
}
