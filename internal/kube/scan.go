package kube

import (
	"errors"
	"io"
)

const (
	// scanBuffer is how much of an answer is in memory besides the value that is read.
	scanBuffer = 16 << 10
	// maxObject bounds what is in memory of one object, and of what a list has besides its objects. etcd keeps no object
	// of more than 1.5 MiB, unless it is told to.
	maxObject = 8 << 20
	// maxDepth bounds how deep values are nested, as encoding/json does.
	maxDepth = 10_000
)

// errSyntax is text that is no JSON.
var errSyntax = errors.New("not JSON")

// scanner splits JSON into values while it is read, and checks no more than it needs for that: the decoder of the values
// checks the rest. encoding/json would read every byte four times.
type scanner struct {
	from    io.Reader
	buffer  []byte
	at, end int
}

func newScanner(from io.Reader) *scanner {
	return &scanner{from: from, buffer: make([]byte, scanBuffer)}
}

// fill reads more when the buffer is empty. The end is io.ErrUnexpectedEOF, since it is called only inside of a value.
func (s *scanner) fill() error {
	for empty := 0; s.at == s.end; empty++ {
		n, err := s.from.Read(s.buffer)
		s.at, s.end = 0, n
		switch {
		case n > 0:
			return nil
		case err == io.EOF:
			return io.ErrUnexpectedEOF
		case err != nil:
			return err
		case empty > 100:
			return io.ErrNoProgress
		}
	}
	return nil
}

// peek is the next byte that is no white space.
func (s *scanner) peek() (byte, error) {
	for {
		for s.at < s.end {
			switch c := s.buffer[s.at]; c {
			case ' ', '\t', '\r', '\n':
				s.at++
			default:
				return c, nil
			}
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// take reads a byte that must come next.
func (s *scanner) take(want byte) error {
	c, err := s.peek()
	if err == nil && c != want {
		err = errSyntax
	}
	if err == nil {
		s.at++
	}
	return err
}

// more says whether an object or a list has another element, and reads the comma or the end.
func (s *scanner) more(first *bool, end byte) (bool, error) {
	c, err := s.peek()
	switch {
	case err != nil:
		return false, err
	case c == end:
		s.at++
		return false, nil
	case *first:
		*first = false
		return true, nil
	case c == ',':
		s.at++
		return true, nil
	}
	return false, errSyntax
}

// key reads the name of an attribute, quoted, and the colon after it.
func (s *scanner) key(to []byte) ([]byte, error) {
	c, err := s.peek()
	if err == nil && c != '"' {
		err = errSyntax
	}
	if err == nil {
		to, err = s.text(to)
	}
	if err == nil {
		err = s.take(':')
	}
	return to, err
}

// value appends the next value.
func (s *scanner) value(to []byte) ([]byte, error) {
	c, err := s.peek()
	if err != nil {
		return to, err
	}
	switch c {
	case '"':
		return s.text(to)
	case '{', '[':
		return s.nested(to)
	}
	return s.word(to)
}

// text appends a quoted text.
func (s *scanner) text(to []byte) ([]byte, error) {
	to = append(to, '"')
	s.at++
	escaped := false
	for {
		for start := s.at; s.at < s.end; {
			c := s.buffer[s.at]
			s.at++
			switch {
			case escaped:
				escaped = false
			case c == '\\':
				escaped = true
			case c == '"':
				return append(to, s.buffer[start:s.at]...), nil
			}
			if s.at == s.end {
				to = append(to, s.buffer[start:s.end]...)
			}
		}
		if len(to) > maxObject {
			return to, errTooLarge
		}
		if err := s.fill(); err != nil {
			return to, err
		}
	}
}

// nested appends an object or a list.
func (s *scanner) nested(to []byte) ([]byte, error) {
	depth := 0
	for {
		if s.at == s.end {
			if len(to) > maxObject {
				return to, errTooLarge
			}
			if err := s.fill(); err != nil {
				return to, err
			}
		}
		c := s.buffer[s.at]
		if c == '"' {
			var err error
			if to, err = s.text(to); err != nil {
				return to, err
			}
			continue
		}
		to = append(to, c)
		s.at++
		switch c {
		case '{', '[':
			if depth++; depth > maxDepth {
				return to, errSyntax
			}
		case '}', ']':
			if depth--; depth == 0 {
				return to, nil
			}
		}
	}
}

// word appends a number, true, false or null.
func (s *scanner) word(to []byte) ([]byte, error) {
	length := len(to)
	for {
		if s.at == s.end {
			if err := s.fill(); err != nil {
				return to, err
			}
		}
		switch c := s.buffer[s.at]; c {
		case ',', '}', ']', ' ', '\t', '\r', '\n', ':', '"', '{', '[':
			if len(to) == length {
				return to, errSyntax
			}
			return to, nil
		default:
			to = append(to, c)
			s.at++
		}
		if len(to)-length > 64 { // no number of Kubernetes is as long
			return to, errSyntax
		}
	}
}

// object appends an object without the managed fields in its metadata, which are half of most objects.
func (s *scanner) object(to []byte, spare *[]byte) ([]byte, error) {
	return s.members(to, func(to []byte, key string) ([]byte, error) {
		c, err := s.peek()
		if err != nil || key != `"metadata"` || c != '{' {
			return s.value(to)
		}
		return s.members(to, func(to []byte, key string) ([]byte, error) {
			if key != `"managedFields"` {
				return s.value(to)
			}
			dropped, err := s.value((*spare)[:0])
			*spare = dropped
			return append(to, "null"...), err
		})
	})
}

// members appends an object whose values are read one by one.
func (s *scanner) members(to []byte, value func(to []byte, key string) ([]byte, error)) ([]byte, error) {
	if err := s.take('{'); err != nil {
		return to, err
	}
	to = append(to, '{')
	for first := true; ; {
		if len(to) > maxObject {
			return to, errTooLarge
		}
		begins := first
		more, err := s.more(&first, '}')
		if err != nil {
			return to, err
		}
		if !more {
			return append(to, '}'), nil
		}
		if !begins {
			to = append(to, ',')
		}
		start := len(to)
		if to, err = s.key(to); err != nil {
			return to, err
		}
		key := string(to[start:])
		if to, err = value(append(to, ':'), key); err != nil {
			return to, err
		}
	}
}
