// Package wire reads and writes large values in the MessagePack of Terraform and providers. The plugin framework builds
// three trees for every value and walks each several times: with 20,000 assignments, provider::flotilla::fleet takes 0.7
// s of processor time, the function itself only 0.1 s; the assignments of flotilla_scheduling take 1.2 s.
package wire

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// errForm makes callers pass the value to the framework, which explains the error.
var errForm = errors.New("not in the expected form")

// maxDepth bounds the nesting of values.
const maxDepth = 1000

// Plain reads the argument of a dynamic parameter for [fleet.Decode]. It refuses a value without a type, and collections
// of any type, which occur only in a provider's own schema.
func Plain(message []byte) (any, error) {
	r := newReader(message)
	if length, err := r.arrayLength(); err != nil || length != 2 {
		return nil, fmt.Errorf("value with its type: %w", errForm)
	}
	if code, err := r.PeekCode(); err != nil || !msgpcode.IsBin(code) {
		return nil, fmt.Errorf("type of the value: %w", errForm)
	}
	text, err := r.DecodeBytes()
	if err != nil {
		return nil, err
	}
	typ, err := fleet.ParseJSON(string(text))
	if err != nil {
		return nil, err
	}
	if !isType(typ) {
		return nil, fmt.Errorf("type %.20v: %w", typ, errForm)
	}
	value, err := r.value(typ, 0)
	if err != nil {
		return nil, err
	}
	return value, r.checkEnd()
}

// isType reports whether JSON is a type of Terraform: "string" or the like, or two elements as in ["list", "string"],
// ["tuple", ["string", "bool"]] and ["object", {"name": "string"}].
func isType(typ any) bool {
	compound, isCompound := typ.([]any)
	switch {
	case !isCompound:
		return typ == "string" || typ == "number" || typ == "bool" || typ == "dynamic"
	case len(compound) != 2: // optional attributes are in no value's type
		return false
	}
	switch compound[0] {
	case "list", "set", "map":
		return isType(compound[1])
	case "tuple":
		elements, isRight := compound[1].([]any)
		for _, element := range elements {
			isRight = isRight && isType(element)
		}
		return isRight
	case "object":
		attributes, isRight := compound[1].(map[string]any)
		for _, attribute := range attributes {
			isRight = isRight && isType(attribute)
		}
		return isRight
	}
	return false
}

func (r *reader) value(typ any, depth int) (any, error) {
	code, err := r.PeekCode()
	if err != nil {
		return nil, err
	}
	switch {
	case depth > maxDepth:
		return nil, fmt.Errorf("more than %d levels: %w", maxDepth, errForm)
	case msgpcode.IsExt(code): // with or without refinements
		return fleet.Unknown{}, r.Skip()
	case code == msgpcode.Nil:
		return nil, r.DecodeNil()
	}
	switch typ {
	case "string":
		return r.text()
	case "bool":
		return r.DecodeBool()
	case "number":
		number, err := r.number(code)
		if err != nil {
			return nil, err
		}
		return fleet.FormatNumber(number), nil
	case "dynamic":
		return nil, fmt.Errorf("value of any type: %w", errForm)
	}
	compound := typ.([]any)
	switch compound[0] {
	case "list", "set", "tuple":
		return r.list(compound, depth)
	}
	return r.object(compound, depth)
}

func (r *reader) list(typ []any, depth int) (any, error) {
	length, err := r.arrayLength()
	if err != nil {
		return nil, err
	}
	isTuple := typ[0] == "tuple"
	elements, _ := typ[1].([]any)
	if isTuple && length != len(elements) {
		return nil, fmt.Errorf("tuple of %d: %w", length, errForm)
	}
	list := make([]any, length)
	for i := range list {
		element := typ[1]
		if isTuple {
			element = elements[i]
		}
		if list[i], err = r.value(element, depth+1); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func (r *reader) object(typ []any, depth int) (any, error) {
	length, err := r.mapLength()
	if err != nil {
		return nil, err
	}
	attributes, isObject := typ[1].(map[string]any)
	if isObject && length != len(attributes) {
		return nil, fmt.Errorf("object of %d attributes: %w", length, errForm)
	}
	object := make(map[string]any, length)
	for range length {
		name, err := r.text()
		if err != nil {
			return nil, err
		}
		element := typ[1]
		if isObject {
			if element = attributes[name]; element == nil {
				return nil, fmt.Errorf("attribute %q: %w", name, errForm)
			}
		}
		if object[name], err = r.value(element, depth+1); err != nil {
			return nil, err
		}
	}
	if len(object) != length {
		return nil, fmt.Errorf("a key comes twice: %w", errForm)
	}
	return object, nil
}

// Replace replaces one attribute of an object.
func Replace(object []byte, name string, value []byte) ([]byte, error) {
	r := newReader(object)
	length, err := r.mapLength()
	if err != nil {
		return nil, err
	}
	from, to := -1, -1
	for range length {
		key, err := r.text()
		if err != nil {
			return nil, err
		}
		start := len(object) - r.rest.Len()
		if err := r.Skip(); err != nil {
			return nil, err
		}
		if key == name {
			from, to = start, len(object)-r.rest.Len()
		}
	}
	if from < 0 || r.rest.Len() > 0 {
		return nil, fmt.Errorf("no object with an attribute %q: %w", name, errForm)
	}
	return slices.Concat(object[:from], value, object[to:]), nil
}

func (r *reader) number(code byte) (*big.Float, error) {
	switch {
	case isSigned(code):
		number, err := r.DecodeInt64()
		return new(big.Float).SetInt64(number), err
	case isUnsigned(code):
		number, err := r.DecodeUint64()
		return new(big.Float).SetUint64(number), err
	case code == msgpcode.Double:
		number, err := r.DecodeFloat64()
		if err != nil || math.IsNaN(number) {
			return nil, cmp.Or(err, fmt.Errorf("not a number: %w", errForm))
		}
		return big.NewFloat(number), nil
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	if strings.ContainsFunc(text, func(c rune) bool { return !strings.ContainsRune("+-.0123456789eE", c) }) {
		return nil, fmt.Errorf("number %q: %w", text, errForm)
	}
	number, _, err := big.ParseFloat(text, 10, 512, big.ToNearestEven) // Terraform's precision
	return number, err
}

// NumbersAsText writes each number as text, Terraform's own second form. Terraform then parses it like the number in the
// state, and finds both equal.
func NumbersAsText(message []byte) ([]byte, error) {
	r, w := newReader(message), NewWriter()
	if err := r.numbersAsText(message, w, 0); err != nil {
		return nil, err
	}
	return w.Bytes(), r.checkEnd()
}

func (r *reader) numbersAsText(message []byte, w *Writer, depth int) error {
	code, err := r.PeekCode()
	if err != nil {
		return err
	}
	elements := 0
	switch {
	case depth > maxDepth:
		return fmt.Errorf("more than %d levels: %w", maxDepth, errForm)
	case isArray(code):
		if elements, err = r.arrayLength(); err == nil {
			w.List(elements)
		}
	case isMap(code):
		if elements, err = r.mapLength(); err == nil {
			w.Map(elements)
		}
		elements *= 2
	case isSigned(code), isUnsigned(code), code == msgpcode.Double:
		var number *big.Float
		if number, err = r.number(code); err == nil {
			w.Text(number.Text('f', -1))
		}
	default:
		from := len(message) - r.rest.Len()
		if err = r.Skip(); err == nil {
			w.message.Write(message[from : len(message)-r.rest.Len()])
		}
	}
	for range elements {
		if err := r.numbersAsText(message, w, depth+1); err != nil {
			return err
		}
	}
	return err
}

// Writer writes a value in parts to memory, so it has no errors. It does not check the schema.
type Writer struct {
	message *bytes.Buffer
	encoder *msgpack.Encoder
}

// NewWriter returns an empty writer.
func NewWriter() *Writer {
	var message bytes.Buffer
	return &Writer{&message, msgpack.NewEncoder(&message)}
}

// Bytes returns the value.
func (w *Writer) Bytes() []byte { return w.message.Bytes() }

// Text writes a string, or a key of a map.
func (w *Writer) Text(text string) { _ = w.encoder.EncodeString(text) }

// List begins a list; elements follow.
func (w *Writer) List(length int) { _ = w.encoder.EncodeArrayLen(length) }

// Map begins a map or object; keys and values follow.
func (w *Writer) Map(length int) { _ = w.encoder.EncodeMapLen(length) }

// Value writes a text or null, or a list or an object of such values. It panics for other types.
func (w *Writer) Value(value attr.Value) {
	if value.IsNull() {
		_ = w.encoder.EncodeNil()
		return
	}
	switch value := value.(type) {
	case types.String:
		w.Text(value.ValueString())
	case types.List:
		elements := value.Elements()
		w.List(len(elements))
		for _, element := range elements {
			w.Value(element)
		}
	case types.Object:
		attributes := value.Attributes()
		w.Map(len(attributes))
		for name, attribute := range attributes {
			w.Text(name)
			w.Value(attribute)
		}
	default:
		panic(fmt.Sprintf("package wire writes no %T", value))
	}
}

type reader struct {
	*msgpack.Decoder
	rest *bytes.Reader
}

func newReader(message []byte) *reader {
	rest := bytes.NewReader(message)
	return &reader{msgpack.NewDecoder(rest), rest}
}

func (r *reader) checkEnd() error {
	if r.rest.Len() > 0 {
		return fmt.Errorf("%d bytes after the value: %w", r.rest.Len(), errForm)
	}
	return nil
}

func (r *reader) arrayLength() (int, error) { return r.checkLength(r.DecodeArrayLen()) }

func (r *reader) mapLength() (int, error) { return r.checkLength(r.DecodeMapLen()) }

// checkLength refuses more elements than bytes remain.
func (r *reader) checkLength(length int, err error) (int, error) {
	if err == nil && (length < 0 || length > r.rest.Len()) {
		err = fmt.Errorf("length %d: %w", length, errForm)
	}
	return length, err
}

func (r *reader) text() (string, error) {
	if code, err := r.PeekCode(); err != nil || !msgpcode.IsString(code) {
		return "", fmt.Errorf("text: %w", errForm)
	}
	return r.DecodeString()
}

func isArray(code byte) bool {
	return msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32
}

func isMap(code byte) bool {
	return msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32
}

// isSigned reports the code of a signed number. Small numbers are their own code.
func isSigned(code byte) bool {
	return msgpcode.IsFixedNum(code) || code >= msgpcode.Int8 && code <= msgpcode.Int64
}

func isUnsigned(code byte) bool { return code >= msgpcode.Uint8 && code <= msgpcode.Uint64 }

// The context of a call hands large values over between the server and the function or data source that has them.

type (
	argumentKey  struct{}
	readArgument struct{ value any }
)

// WithArgument gives a function an argument that has been read.
func WithArgument(ctx context.Context, value any) context.Context {
	return context.WithValue(ctx, argumentKey{}, &readArgument{value})
}

// ArgumentOf returns the argument that has been read; false where the framework reads it.
func ArgumentOf(ctx context.Context) (any, bool) {
	read, ok := ctx.Value(argumentKey{}).(*readArgument)
	if !ok {
		return nil, false
	}
	return read.value, true
}

type (
	asideKey struct{}
	// Aside is an attribute that is set aside: its name, and its value as Terraform gets it.
	Aside struct {
		Name  string
		Value []byte
	}
)

// WithAside lets a data source set an attribute aside.
func WithAside(ctx context.Context) (context.Context, *Aside) {
	aside := &Aside{}
	return context.WithValue(ctx, asideKey{}, aside), aside
}

// SetAside keeps an attribute for the server, so that the framework sees it as null. It returns false where the
// framework must have the attribute.
func SetAside(ctx context.Context, name string, write func(*Writer)) bool {
	aside, ok := ctx.Value(asideKey{}).(*Aside)
	if !ok {
		return false
	}
	w := NewWriter()
	write(w)
	aside.Name, aside.Value = name, w.Bytes()
	return true
}
