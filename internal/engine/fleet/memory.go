package fleet

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// The bounds of the memory that reading a text into a type of the model may take: the first for a text of less than
// 1 MiB, the second for each byte of a longer one. The value of provider::flotilla::fleet takes about ten times its
// length.
const (
	maxMemory        = 48 << 20
	maxMemoryPerByte = 64
)

// How much memory the parts of a value take, approximately, including what is discarded while lists grow.
const (
	growth       = 5   // of a list: elements that are made for each that stays
	emptyObject  = 48  // bytes
	smallObject  = 400 // bytes of an object with a key or more
	memberMemory = 64  // bytes of each of its keys
	anyMemory    = 24  // bytes of any value
)

// checkMemory checks that a text has the shape of a type, and that reading it would not take too much memory: a few
// bytes can become a large object, and lists are copied while they grow. It allocates nothing of the value.
func checkMemory(text string, t reflect.Type) error {
	e := &estimate{text: text, tokens: newTokens(text), limit: maxMemory, fields: map[reflect.Type]map[string]reflect.Type{}}
	if len(text) >= 1<<20 {
		e.limit = maxMemoryPerByte * len(text)
	}
	return readingError(text, e.value(t, 0))
}

// estimate is the state of checkMemory.
type estimate struct {
	text          string
	tokens        *jsontext.Decoder
	memory, limit int
	fields        map[reflect.Type]map[string]reflect.Type
}

func (e *estimate) add(bytes int) error {
	if e.memory += bytes; e.memory > e.limit {
		return fmt.Errorf("is too complex: reading it would take more than %d MiB of memory for its %d bytes", e.limit>>20, len(e.text))
	}
	return nil
}

// value skips one value, which must fit the type.
func (e *estimate) value(t reflect.Type, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	if t.Kind() == reflect.Pointer {
		if err := e.add(int(t.Elem().Size())); err != nil {
			return err
		}
		t = t.Elem()
	}
	rest := e.text[e.tokens.InputOffset():]
	token, err := e.tokens.ReadToken()
	if err != nil {
		return err
	}
	switch kind, isAny := t.Kind(), t.Kind() == reflect.Interface; token.Kind() {
	case 'n':
		return nil
	case '{':
		if kind == reflect.Struct || kind == reflect.Map || isAny {
			return e.object(t, depth)
		}
	case '[':
		if kind == reflect.Slice || isAny {
			return e.list(t, depth)
		}
	case '"':
		if kind == reflect.String || isAny {
			return nil
		}
	case 't', 'f':
		if kind == reflect.Bool || isAny {
			return nil
		}
	case '0':
		if t == reflect.TypeFor[json.Number]() || reflect.Int <= kind && kind <= reflect.Float64 || isAny {
			return checkDigits(token.String())
		}
	}
	return fmt.Errorf("has an unexpected character at offset %d", len(e.text)-len(strings.TrimLeft(rest, " \t\r\n,:")))
}

func (e *estimate) list(t reflect.Type, depth int) error {
	element, each := t, anyMemory*growth
	if t.Kind() == reflect.Slice {
		element, each = t.Elem(), int(t.Elem().Size())*growth
	}
	for e.tokens.PeekKind() != ']' {
		if err := e.add(each); err != nil {
			return err
		}
		if err := e.value(element, depth+1); err != nil {
			return err
		}
	}
	_, err := e.tokens.ReadToken()
	return err
}

func (e *estimate) object(t reflect.Type, depth int) error {
	isStruct, size := t.Kind() == reflect.Struct, emptyObject
	for e.tokens.PeekKind() != '}' {
		key, err := e.tokens.ReadToken()
		if err != nil {
			return err
		}
		member := t
		if isStruct {
			var known bool
			if member, known = e.fieldsOf(t)[key.String()]; !known {
				return fmt.Errorf("has an unknown attribute %q", key.String())
			}
		} else if t.Kind() == reflect.Map {
			member = t.Elem()
		}
		size = smallObject
		if err := e.value(member, depth+1); err != nil {
			return err
		}
		if !isStruct {
			if err := e.add(memberMemory + sizeInMap(t)); err != nil {
				return err
			}
		}
	}
	if _, err := e.tokens.ReadToken(); err != nil || isStruct {
		return err
	}
	return e.add(size)
}

// sizeInMap is how much an element of a map takes beside what it refers to.
func sizeInMap(t reflect.Type) int {
	if t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct {
		return int(t.Elem().Size()) * growth
	}
	return 0
}

// fieldsOf returns the types of a struct's fields, by their names in JSON.
func (e *estimate) fieldsOf(t reflect.Type) map[string]reflect.Type {
	if fields, known := e.fields[t]; known {
		return fields
	}
	fields := map[string]reflect.Type{}
	for _, field := range reflect.VisibleFields(t) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = field.Type
		}
	}
	e.fields[t] = fields
	return fields
}
