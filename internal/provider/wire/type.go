package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/go-json-experiment/json/jsontext"
)

// valueType is what decoding needs of a Terraform type.
type valueType struct {
	kind     byte
	element  *valueType   // of lists, sets and maps
	names    []string     // of an object's attributes, in order
	elements []*valueType // of tuples and, by names, of objects
}

const (
	kindDynamic = iota
	kindString
	kindNumber
	kindBool
	kindList // and set
	kindTuple
	kindMap
	kindObject
)

var (
	scalarTypes = map[string]*valueType{
		`"string"`: {kind: kindString}, `"number"`: {kind: kindNumber}, `"bool"`: {kind: kindBool}, `"dynamic"`: {kind: kindDynamic},
	}
	compoundKinds = map[string]byte{
		`"list"`: kindList, `"set"`: kindList, `"map"`: kindMap, `"tuple"`: kindTuple, `"object"`: kindObject,
	}
)

// attribute returns nil for an unknown name. It tries index first: attributes mostly follow the order of their type.
func (t *valueType) attribute(name string, index int) *valueType {
	if t.names[index] == name {
		return t.elements[index]
	}
	for i := range t.names {
		if t.names[i] == name {
			return t.elements[i]
		}
	}
	return nil
}

// types caches types by their JSON: elements of a tuple often share one.
type types map[string]*valueType

// maxShared is the deepest cached level. Each level reads the JSON once more.
const maxShared = 8

// parseType reads ["object",{"name":"string","tags":["map","string"]}]. A fleet's type is a megabyte.
func parseType(text []byte) (*valueType, error) {
	tokens := newTokens(text)
	typ, err := types{}.read(tokens, 0)
	if err != nil {
		return nil, err
	}
	if _, err := tokens.ReadToken(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("text after the type: %w", errForm)
	}
	return typ, nil
}

func newTokens(text []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true))
}

func (t types) next(tokens *jsontext.Decoder, depth int) (*valueType, error) {
	if depth > maxShared || tokens.PeekKind() != '[' {
		return t.read(tokens, depth)
	}
	text, err := tokens.ReadValue()
	if err != nil {
		return nil, err
	}
	if typ := t[string(text)]; typ != nil {
		return typ, nil
	}
	typ, err := t.read(newTokens(text), depth)
	if err == nil {
		t[string(text)] = typ
	}
	return typ, err
}

func (t types) read(tokens *jsontext.Decoder, depth int) (*valueType, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("type of more than %d levels: %w", maxDepth, errForm)
	}
	if tokens.PeekKind() == '"' {
		name, err := tokens.ReadValue()
		if typ := scalarTypes[string(name)]; typ != nil || err != nil {
			return typ, err
		}
		return nil, fmt.Errorf("type %.20s: %w", name, errForm)
	}
	if err := expect(tokens, '['); err != nil {
		return nil, err
	}
	name, err := tokens.ReadValue()
	if err != nil {
		return nil, err
	}
	typ := &valueType{kind: compoundKinds[string(name)]}
	switch typ.kind {
	case kindList, kindMap:
		typ.element, err = t.read(tokens, depth+1)
	case kindTuple:
		err = t.elements(typ, tokens, '[', depth+1)
	case kindObject:
		err = t.elements(typ, tokens, '{', depth+1)
	default:
		err = fmt.Errorf("type %.20s: %w", name, errForm)
	}
	if err != nil {
		return nil, err
	}
	return typ, expect(tokens, ']') // optional attributes are in no value's type
}

// elements reads the types of elements or attributes.
func (t types) elements(of *valueType, tokens *jsontext.Decoder, begin jsontext.Kind, depth int) error {
	if err := expect(tokens, begin); err != nil {
		return err
	}
	for end := tokens.PeekKind(); end != ']' && end != '}'; end = tokens.PeekKind() {
		if of.kind == kindObject {
			name, err := tokens.ReadToken()
			if err != nil {
				return err
			}
			of.names = append(of.names, name.String())
		}
		element, err := t.next(tokens, depth)
		if err != nil {
			return err
		}
		of.elements = append(of.elements, element)
	}
	_, err := tokens.ReadToken()
	return err
}

func expect(tokens *jsontext.Decoder, kind jsontext.Kind) error {
	token, err := tokens.ReadToken()
	if err == nil && token.Kind() != kind {
		err = fmt.Errorf("type with %.20q in place of %s: %w", token.String(), kind, errForm)
	}
	return err
}
