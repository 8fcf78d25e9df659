package kube

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const (
	// maxObject bounds one object, and the head of a list, in bytes. By default, etcd stores no object of more than 1.5
	// MiB.
	maxObject = 8 << 20
	// maxName bounds parts of an object's identity in bytes. Kubernetes limits names to 253.
	maxName = 512
)

var (
	errTooLarge = errors.New("too large")
	// errNoObjects means JSON that is not from Kubernetes.
	errNoObjects = errors.New("not of Kubernetes")
)

// reader reads objects while an answer arrives. Clusters may be hostile, so all strings pass through [wording.Visible].
// client-go's dynamic client holds a page as text, raw objects and objects at once: BenchmarkAsk, its server included,
// takes 2.1 times the processor time (18.6 s instead of 9.0) and 127 MiB instead of 112, and a page has no size limit.
// Its discovery client adds 16 MiB to the provider and 20 MiB to its memory, because it includes the types of all of
// Kubernetes.
type reader struct {
	json *jsontext.Decoder
	from *bounded.Reader
	read int64 // bytes before the current object
	most int64 // bytes of all objects
	// skip lists fields to skip by the field that contains them, also in a list.
	skip map[string][]string
}

var managedFields = map[string][]string{"metadata": {"managedFields"}}

func newReader(from io.Reader) *reader {
	r := &reader{json: &jsontext.Decoder{}, most: maxAnswer, skip: managedFields}
	r.next(from)
	return r
}

// next continues with the next page of a list. The decoder keeps its buffer, as large as the largest string so far.
func (r *reader) next(from io.Reader) {
	r.from, r.read = &bounded.Reader{From: from, Left: maxObject, TooLong: errTooLarge}, 0
	r.json.Reset(r.from, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

func (r *reader) members(each func(key string) error) error {
	return r.contents('{', '}', func() error {
		key, err := r.json.ReadToken()
		if err != nil {
			return err
		}
		return each(key.String())
	})
}

func (r *reader) elements(each func() error) error { return r.contents('[', ']', each) }

func (r *reader) contents(first, last jsontext.Kind, each func() error) error {
	if r.json.PeekKind() != first {
		return cmp.Or(r.json.SkipValue(), errNoObjects)
	}
	_, err := r.json.ReadToken()
	for err == nil && r.json.PeekKind() != last {
		err = each()
	}
	if err == nil {
		_, err = r.json.ReadToken()
	}
	return err
}

// value reads a value with the types of package unstructured.
func (r *reader) value(of string) (any, error) {
	switch r.json.PeekKind() {
	case '{':
		found := map[string]any{}
		skip := r.skip[of]
		err := r.members(func(key string) error {
			if slices.Contains(skip, key) {
				return r.json.SkipValue()
			}
			value, err := r.value(key)
			found[visibleText(key)] = value
			return err
		})
		return found, err
	case '[':
		found := []any{}
		err := r.elements(func() error {
			value, err := r.value(of)
			found = append(found, value)
			return err
		})
		return found, err
	}
	token, err := r.json.ReadToken()
	if err != nil {
		return nil, err
	}
	switch token.Kind() {
	case '"':
		return visibleText(token.String()), nil
	case '0':
		if whole, err := strconv.ParseInt(token.String(), 10, 64); err == nil {
			return whole, nil
		}
		number, err := strconv.ParseFloat(token.String(), 64)
		if err != nil {
			return nil, errNoObjects
		}
		return number, nil
	case 't', 'f':
		return token.Bool(), nil
	}
	return nil, nil //nolint:nilnil // null
}

// object reads an object whose identity consists of short single lines.
func (r *reader) object() (*unstructured.Unstructured, error) {
	if r.read += maxObject - r.from.Left; r.read > r.most {
		return nil, errTooLarge
	}
	r.from.Left = maxObject
	value, err := r.value("")
	if err != nil {
		return nil, err
	}
	content, ok := value.(map[string]any)
	if !ok {
		return nil, errNoObjects
	}
	object := &unstructured.Unstructured{Object: content}
	for _, text := range []string{
		object.GetAPIVersion(), object.GetKind(), object.GetName(), object.GetNamespace(), string(object.GetUID()), object.GetResourceVersion(),
	} {
		if !isName(text) {
			return nil, errNoObjects
		}
	}
	return object, nil
}

// list passes each object of a page to keep at once, and returns the token of the next page.
func (r *reader) list(keep func(*unstructured.Unstructured) error) (token string, err error) {
	head := unstructured.Unstructured{Object: map[string]any{}}
	var unnamed []*unstructured.Unstructured
	err = r.members(func(key string) (err error) {
		if key != "items" {
			head.Object[key], err = r.value("")
			return err
		}
		if r.json.PeekKind() == 'n' { // an empty list
			return r.json.SkipValue()
		}
		return r.elements(func() error {
			object, err := r.object()
			if err == nil && object.GetName() == "" {
				err = errNoObjects
			}
			if err != nil {
				return err
			}
			if object.GetKind() == "" { // lists of built-in kinds do not repeat it
				unnamed = append(unnamed, object)
			}
			return keep(object)
		})
	})
	if err != nil {
		return "", err
	}
	kind, version := head.GetKind(), head.GetAPIVersion()
	token, _, err = unstructured.NestedString(head.Object, "metadata", "continue")
	if err != nil || !strings.HasSuffix(kind, "List") || version == "" || !isName(kind) || !isName(version) {
		return "", errNoObjects
	}
	for _, object := range unnamed {
		object.SetKind(strings.TrimSuffix(kind, "List"))
		object.SetAPIVersion(version)
	}
	return token, nil
}

// readObject reads an answer that is one object, with managed fields.
func readObject(response *http.Response, name string) (*unstructured.Unstructured, error) {
	read := newReader(response.Body)
	read.skip = nil
	object, err := read.object()
	if err == nil && object.GetKind() == "" {
		err = errNoObjects
	}
	switch {
	case errors.Is(err, errTooLarge):
		return nil, serverf(ReasonIncomplete, "answers with an object of %s that is larger than can be read (%d MiB)", name, maxObject>>20)
	case err != nil:
		return nil, answerError(err, ResourceKind{Resource: name})
	}
	return object, nil
}

// answerError explains why the body of a successful answer cannot be read.
func answerError(err error, kind ResourceKind) error {
	var syntax *jsontext.SyntacticError
	switch {
	case errors.Is(err, errTooLarge):
		return serverf(ReasonIncomplete, "has more %s than can be read (%d objects, %d MiB)", kind, maxObjects, maxAnswer>>20)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return serverf(ReasonIncomplete, "closed the connection in the middle of its answer")
	case errors.Is(err, errNoObjects), errors.As(err, &syntax):
		return notKubernetes()
	case isTimeout(err):
		return err
	}
	return withAnswer(serverf(ReasonIncomplete, "closed the connection in the middle of its answer"), cause(err))
}

func isName(text string) bool {
	return len(text) <= maxName && wording.IsLine(text)
}

// visibleText is [wording.Visible] with a fast path for ASCII.
func visibleText(text string) string {
	isPlain := func(c byte) bool { return c >= ' ' && c < 0x7f || c == '\n' || c == '\t' }
	for i := range len(text) {
		if !isPlain(text[i]) {
			return wording.Visible(text)
		}
	}
	return text
}

func weight(value any) int {
	switch value := value.(type) {
	case string:
		return 16 + len(value)
	case []any:
		sum := 24
		for i := range value {
			sum += 16 + weight(value[i])
		}
		return sum
	case map[string]any:
		sum := 48
		for key, inner := range value {
			sum += 40 + len(key) + weight(inner)
		}
		return sum
	}
	return 16
}
