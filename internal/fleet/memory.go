package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
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
	e := &estimate{jsonReader: jsonReader{text: text}, limit: maxMemory, fields: map[reflect.Type]map[string]reflect.Type{}}
	if len(text) >= 1<<20 {
		e.limit = maxMemoryPerByte * len(text)
	}
	err := e.value(t, 0)
	if errors.Is(err, errSyntax) {
		return e.syntaxError()
	}
	return err
}

// estimate is the state of checkMemory.
type estimate struct {
	jsonReader
	memory, limit int
	fields        map[reflect.Type]map[string]reflect.Type
}

func (e *estimate) add(bytes int) error {
	if e.memory += bytes; e.memory > e.limit {
		return fmt.Errorf("is too complex: reading it would take more than %d MiB of memory for its %d bytes", e.limit>>20, len(e.text))
	}
	return nil
}

var numberType = reflect.TypeFor[json.Number]()

// value skips one value, which must fit the type.
func (e *estimate) value(t reflect.Type, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d levels", maxDepth)
	}
	if e.space(); e.at == len(e.text) {
		return errSyntax
	}
	if t.Kind() == reflect.Pointer {
		if err := e.add(int(t.Elem().Size())); err != nil {
			return err
		}
		t = t.Elem()
	}
	start, kind := e.at, t.Kind()
	switch c := e.text[e.at]; {
	case c == 'n':
		_, err := e.literal("null", nil)
		return err
	case c == '{' && (kind == reflect.Struct || kind == reflect.Map || kind == reflect.Interface):
		return e.object(t, depth)
	case c == '[' && (kind == reflect.Slice || kind == reflect.Interface):
		return e.list(t, depth)
	case c == '"' && (kind == reflect.String || kind == reflect.Interface):
		_, err := e.string()
		return err
	case (c == 't' || c == 'f') && (kind == reflect.Bool || kind == reflect.Interface):
		_, err := e.literal(map[bool]string{true: "true", false: "false"}[c == 't'], nil)
		return err
	case t == numberType || reflect.Int <= kind && kind <= reflect.Float64 || kind == reflect.Interface:
		_, err := e.number()
		return err
	case strings.IndexByte(`{["tf-0123456789`, c) < 0:
		return errSyntax
	}
	return fmt.Errorf("has an unexpected character at offset %d", start)
}

func (e *estimate) list(t reflect.Type, depth int) error {
	element, each := t, anyMemory*growth
	if t.Kind() == reflect.Slice {
		element, each = t.Elem(), int(t.Elem().Size())*growth
	}
	e.at++
	if e.take(']') {
		return nil
	}
	for {
		if err := e.add(each); err != nil {
			return err
		}
		if err := e.value(element, depth+1); err != nil {
			return err
		}
		if e.take(']') {
			return nil
		}
		if !e.take(',') {
			return errSyntax
		}
	}
}

func (e *estimate) object(t reflect.Type, depth int) error {
	isStruct, keys := t.Kind() == reflect.Struct, 0
	e.at++
	for done := e.take('}'); !done; {
		if e.space(); e.at == len(e.text) || e.text[e.at] != '"' {
			return errSyntax
		}
		key, err := e.string()
		if err != nil {
			return err
		}
		if !e.take(':') {
			return errSyntax
		}
		member := t
		if isStruct {
			var known bool
			if member, known = e.fieldsOf(t)[key]; !known {
				return fmt.Errorf("has an unknown attribute %q", key)
			}
		} else if t.Kind() == reflect.Map {
			member = t.Elem()
		}
		keys++
		if err := e.value(member, depth+1); err != nil {
			return err
		}
		if done = e.take('}'); !done && !e.take(',') {
			return errSyntax
		}
		if !isStruct {
			if err := e.add(memberMemory); err != nil {
				return err
			}
		}
	}
	switch {
	case isStruct:
		return nil
	case keys == 0:
		return e.add(emptyObject)
	}
	return e.add(smallObject)
}

// fieldsOf returns the types of a struct's fields, by their names in JSON.
func (e *estimate) fieldsOf(t reflect.Type) map[string]reflect.Type {
	if fields, known := e.fields[t]; known {
		return fields
	}
	fields := map[string]reflect.Type{}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name != "" && name != "-" {
			fields[name] = t.Field(i).Type
		}
	}
	e.fields[t] = fields
	return fields
}
