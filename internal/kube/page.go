package kube

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// pageReader reads the pages of a list, object by object, so that a large page is never in memory as a whole.
type pageReader struct {
	kind  Kind
	trim  func(*unstructured.Unstructured)
	items []*unstructured.Unstructured
}

// errTooLarge is the end of an answer that is longer than is read.
var errTooLarge = errors.New("too large")

// bounded ends with errTooLarge, not with an end of file, where a limit is reached.
type bounded struct {
	from io.Reader
	left int64
}

func (b *bounded) Read(buffer []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	n, err := b.from.Read(buffer[:min(int64(len(buffer)), b.left)])
	b.left -= int64(n)
	return n, err
}

// read reads one page and returns the token of the next; "" for the last.
func (p *pageReader) read(response *http.Response) (token string, err error) {
	if !isJSON(response) {
		return "", notKubernetes()
	}
	decoder := json.NewDecoder(&bounded{from: response.Body, left: maxAnswer})
	var list struct{ kind, apiVersion string }
	first := len(p.items)
	if err := expect(decoder, '{'); err != nil {
		return "", p.broken(err)
	}
	for decoder.More() {
		key, err := decoder.Token()
		if err != nil {
			return "", p.broken(err)
		}
		switch key {
		case "kind":
			err = decoder.Decode(&list.kind)
		case "apiVersion":
			err = decoder.Decode(&list.apiVersion)
		case "metadata":
			var metadata struct {
				Continue string `json:"continue"`
			}
			err = decoder.Decode(&metadata)
			token = metadata.Continue
		case "items":
			err = p.readItems(decoder)
		default:
			var ignored json.RawMessage
			err = decoder.Decode(&ignored)
		}
		if err != nil {
			return "", p.broken(err)
		}
	}
	if err := expect(decoder, '}'); err != nil {
		return "", p.broken(err)
	}
	if !strings.HasSuffix(list.kind, "List") || list.apiVersion == "" {
		return "", notKubernetes()
	}
	for _, item := range p.items[first:] {
		if item.GetKind() == "" { // lists of built-in kinds do not repeat it
			item.SetKind(strings.TrimSuffix(list.kind, "List"))
			item.SetAPIVersion(list.apiVersion)
		}
	}
	return token, nil
}

func (p *pageReader) readItems(decoder *json.Decoder) error {
	opening, err := decoder.Token()
	if err != nil || opening == nil { // null is an empty list
		return err
	}
	if opening != json.Delim('[') {
		return errNoList
	}
	for decoder.More() {
		object, err := decodeObject(decoder)
		if err != nil {
			return err
		}
		if p.trim != nil {
			p.trim(object)
		}
		if p.items = append(p.items, object); len(p.items) > maxObjects {
			return errTooLarge
		}
	}
	return expect(decoder, ']')
}

// errNoList is an answer that is JSON, and none of Kubernetes.
var errNoList = errors.New("not a list")

// decodeObject reads an object that has at least a name.
func decodeObject(decoder *json.Decoder) (*unstructured.Unstructured, error) {
	var raw json.RawMessage
	if err := decoder.Decode(&raw); err != nil {
		return nil, err
	}
	var content map[string]any
	if utiljson.Unmarshal(raw, &content) != nil {
		return nil, errNoList
	}
	object := &unstructured.Unstructured{Object: content}
	if object.GetName() == "" {
		return nil, errNoList
	}
	unstructured.RemoveNestedField(content, "metadata", "managedFields")
	return object, nil
}

func expect(decoder *json.Decoder, delimiter json.Delim) error {
	found, err := decoder.Token()
	if err == nil && found != delimiter {
		err = errNoList
	}
	return err
}

// readObject reads an answer that is one object.
func readObject(response *http.Response, kind Kind) (*unstructured.Unstructured, error) {
	if !isJSON(response) {
		return nil, notKubernetes()
	}
	object, err := decodeObject(json.NewDecoder(&bounded{from: response.Body, left: maxAnswer}))
	if err != nil {
		return nil, broken(err, kind)
	}
	return object, nil
}

func (p *pageReader) broken(err error) error { return broken(err, p.kind) }

// broken says what is wrong with an answer that began as one of success.
func broken(err error, kind Kind) error {
	var syntax *json.SyntaxError
	var typed *json.UnmarshalTypeError
	switch {
	case errors.Is(err, errTooLarge):
		return serverf(ReasonIncomplete, "has more %s than are read (%d objects, %d MiB)", kind, maxObjects, maxAnswer>>20)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.As(err, &syntax) && strings.Contains(syntax.Error(), "unexpected end"):
		return serverf(ReasonIncomplete, "broke off in the middle of its answer")
	case errors.Is(err, errNoList), errors.As(err, &syntax), errors.As(err, &typed):
		return notKubernetes()
	case isTimeout(err):
		return err
	}
	return serverf(ReasonIncomplete, "broke off in the middle of its answer: %s", cause(err))
}
