package wire

import (
	"encoding/json"
	"fmt"
	"strings"
)

// valueType is a type of Terraform's, as far as it decides how a value is read.
type valueType struct {
	kind     byte
	element  *valueType   // of lists, sets and maps
	names    []string     // of an object's attributes, as they come
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
		"string": {kind: kindString}, "number": {kind: kindNumber}, "bool": {kind: kindBool}, "dynamic": {kind: kindDynamic},
	}
	compoundKinds = map[string]byte{
		"list": kindList, "set": kindList, "map": kindMap, "tuple": kindTuple, "object": kindObject,
	}
)

// attribute returns the type of the attribute of this name, nil where there is none. Attributes come in the
// order of their type, so that most are at the index where they are looked for.
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

// parseType reads the JSON of a type, such as ["object",{"name":"string","tags":["map","string"]}]. The
// type of a fleet is a megabyte of it, with a type for each object of each list.
func parseType(text string) (*valueType, error) {
	p := &typeParser{rest: text}
	typ, err := p.typ(0)
	if err == nil && p.rest != "" {
		err = p.wrong()
	}
	return typ, err
}

type typeParser struct {
	rest string
}

func (p *typeParser) wrong() error {
	return fmt.Errorf("type at %.20q: %w", p.rest, errForm)
}

// expect cuts off a text that must come next. There is no white space: Terraform writes none.
func (p *typeParser) expect(text string) error {
	rest, ok := strings.CutPrefix(p.rest, text)
	if !ok {
		return p.wrong()
	}
	p.rest = rest
	return nil
}

// ends says whether a list or an object ends here, and cuts off its end, or the comma between two elements.
func (p *typeParser) ends(with string, first bool) (bool, error) {
	if rest, ok := strings.CutPrefix(p.rest, with); ok {
		p.rest = rest
		return true, nil
	}
	if first {
		return false, nil
	}
	return false, p.expect(",")
}

func (p *typeParser) typ(depth int) (*valueType, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("type of more than %d levels: %w", maxDepth, errForm)
	}
	compound := strings.HasPrefix(p.rest, "[")
	if compound {
		p.rest = p.rest[1:]
	}
	name, err := p.text()
	if err != nil {
		return nil, err
	}
	if !compound {
		if typ, ok := scalarTypes[name]; ok {
			return typ, nil
		}
		return nil, p.wrong()
	}
	typ := &valueType{kind: compoundKinds[name]}
	if err := p.expect(","); err != nil {
		return nil, err
	}
	switch typ.kind {
	case kindList, kindMap:
		typ.element, err = p.typ(depth + 1)
	case kindTuple:
		err = p.tuple(typ, depth)
	case kindObject:
		err = p.object(typ, depth)
	default:
		err = p.wrong()
	}
	if err != nil {
		return nil, err
	}
	return typ, p.expect("]") // optional attributes are in no value's type
}

func (p *typeParser) tuple(typ *valueType, depth int) error {
	if err := p.expect("["); err != nil {
		return err
	}
	for {
		if end, err := p.ends("]", len(typ.elements) == 0); end || err != nil {
			return err
		}
		element, err := p.typ(depth + 1)
		if err != nil {
			return err
		}
		typ.elements = append(typ.elements, element)
	}
}

func (p *typeParser) object(typ *valueType, depth int) error {
	if err := p.expect("{"); err != nil {
		return err
	}
	for {
		if end, err := p.ends("}", len(typ.elements) == 0); end || err != nil {
			return err
		}
		name, err := p.text()
		if err != nil {
			return err
		}
		if err := p.expect(":"); err != nil {
			return err
		}
		element, err := p.typ(depth + 1)
		if err != nil {
			return err
		}
		typ.names, typ.elements = append(typ.names, name), append(typ.elements, element)
	}
}

// text reads a JSON string.
func (p *typeParser) text() (string, error) {
	if err := p.expect(`"`); err != nil {
		return "", err
	}
	for i := 0; i < len(p.rest); i++ {
		switch c := p.rest[i]; {
		case c == '"':
			text := p.rest[:i]
			p.rest = p.rest[i+1:]
			return text, nil
		case c == '\\' || c < ' ' || c >= 0x80:
			return p.escaped()
		}
	}
	return "", p.wrong()
}

// escaped is text for what is not plain ASCII.
func (p *typeParser) escaped() (string, error) {
	for i := 0; i < len(p.rest); i++ {
		switch p.rest[i] {
		case '\\':
			i++
		case '"':
			var text string
			if err := json.Unmarshal([]byte(`"`+p.rest[:i+1]), &text); err != nil {
				return "", fmt.Errorf("type: %w", errForm)
			}
			p.rest = p.rest[i+1:]
			return text, nil
		}
	}
	return "", p.wrong()
}
