package kube

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// pageReader reads the pages of a list object by object, so that a large page is never in memory as a whole.
type pageReader struct {
	kind  Kind
	trim  func(*unstructured.Unstructured)
	items []*unstructured.Unstructured

	raw, dropped []byte // of one object at a time
	kept         int    // about how many bytes the objects take
}

var (
	// errTooLarge is an answer that is longer than may be read.
	errTooLarge = errors.New("too large")
	// errNoObjects is an answer that is JSON, but not of Kubernetes.
	errNoObjects = errors.New("not of Kubernetes")
)

// bounded is a reader that ends with errTooLarge where a limit is reached.
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
	token, err = p.readList(newScanner(&bounded{from: response.Body, left: maxAnswer}))
	if err != nil {
		return "", answerError(err, p.kind)
	}
	return token, nil
}

func (p *pageReader) readList(s *scanner) (token string, err error) {
	var head struct {
		Kind       string `json:"kind"`
		APIVersion string `json:"apiVersion"`
		Metadata   struct {
			Continue string `json:"continue"`
		} `json:"metadata"`
	}
	first := len(p.items)
	// Of the list, all but its items is kept.
	rest, err := s.members(nil, func(to []byte, key string) ([]byte, error) {
		if key != `"items"` {
			return s.value(to)
		}
		return append(to, "null"...), p.readItems(s)
	})
	if err != nil {
		return "", err
	}
	if json.Unmarshal(rest, &head) != nil || !strings.HasSuffix(head.Kind, "List") || head.APIVersion == "" || !isName(head.Kind) || !isName(head.APIVersion) {
		return "", errNoObjects
	}
	for _, item := range p.items[first:] {
		if item.GetKind() == "" { // lists of built-in kinds do not repeat it
			item.SetKind(strings.TrimSuffix(head.Kind, "List"))
			item.SetAPIVersion(head.APIVersion)
		}
	}
	return head.Metadata.Continue, nil
}

func (p *pageReader) readItems(s *scanner) error {
	c, err := s.peek()
	if err != nil {
		return err
	}
	if c != '[' { // null is an empty list
		word, err := s.value(nil)
		if err == nil && string(word) != "null" {
			err = errNoObjects
		}
		return err
	}
	s.at++
	for first := true; ; {
		more, err := s.more(&first, ']')
		if err != nil || !more {
			return err
		}
		object, err := p.readObject(s)
		if err != nil {
			return err
		}
		if p.trim != nil {
			p.trim(object)
		}
		p.kept += weight(object.Object)
		if p.items = append(p.items, object); len(p.items) > maxObjects || p.kept > maxKept {
			return errTooLarge
		}
	}
}

// readObject reads an object that has at least a name.
func (p *pageReader) readObject(s *scanner) (*unstructured.Unstructured, error) {
	raw, err := s.object(p.raw[:0], &p.dropped)
	p.raw = raw
	if err != nil {
		return nil, err
	}
	object, err := decodeObject(raw)
	if err != nil || object.GetName() == "" {
		return nil, errNoObjects
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	return object, nil
}

// readObject reads an answer that is one object.
func readObject(response *http.Response, kind Kind) (*unstructured.Unstructured, error) {
	if !isJSON(response) {
		return nil, notKubernetes()
	}
	reader := pageReader{kind: kind}
	object, err := reader.readObject(newScanner(&bounded{from: response.Body, left: maxAnswer}))
	if err != nil {
		return nil, objectError(err, kind.String())
	}
	return object, nil
}

// objectError is answerError for an answer that is one object.
func objectError(err error, name string) error {
	if errors.Is(err, errTooLarge) {
		return serverf(ReasonIncomplete, "answers with an object of %s that is larger than can be read (%d MiB)", name, maxObject>>20)
	}
	return answerError(err, Kind{Resource: name})
}

// answerError is the error for an answer of success whose body cannot be read.
func answerError(err error, kind Kind) error {
	switch {
	case errors.Is(err, errTooLarge):
		return serverf(ReasonIncomplete, "has more %s than can be read (%d objects, %d MiB)", kind, maxObjects, maxAnswer>>20)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return serverf(ReasonIncomplete, "closed the connection in the middle of its answer")
	case errors.Is(err, errNoObjects), errors.Is(err, errSyntax):
		return notKubernetes()
	case isTimeout(err):
		return err
	}
	return withAnswer(serverf(ReasonIncomplete, "closed the connection in the middle of its answer"), cause(err))
}
