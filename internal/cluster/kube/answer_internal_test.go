package kube

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// readAll reads a page from a text twice, at once and byte by byte, and compares the results.
func readAll(t *testing.T, text string) (objects []any, token string, err error) {
	t.Helper()
	for _, whole := range []bool{true, false} {
		from := newReader(strings.NewReader(text))
		if !whole {
			from = newReader(iotest.OneByteReader(strings.NewReader(text)))
		}
		var items []*unstructured.Unstructured
		var found []any
		next, readError := from.list(func(item *unstructured.Unstructured) error {
			items = append(items, item)
			return nil
		})
		for _, item := range items {
			found = append(found, item.Object)
		}
		if !whole && (next != token || (readError == nil) != (err == nil) || !reflect.DeepEqual(found, objects)) {
			t.Errorf("%q gives %v %q %v at once, but %v %q %v byte by byte", text, objects, token, err, found, next, readError)
		}
		objects, token, err = found, next, readError
	}
	return objects, token, err
}

// FuzzPage compares the objects of a page with those of encoding/json, without the managed fields.
func FuzzPage(f *testing.F) {
	f.Add(
		`{"kind":"XList","apiVersion":"v1","metadata":{"continue":"next"},"items":[{"metadata":{"name":"a","managedFields":[{"a":"}]\"\\"}],"labels":{"b":"c"}},"spec":{"n":5,"f":1.5e3,"t":[true,null,{"x":[]}]}}]}`,
	)
	f.Add(`{"items":null,"kind":"List","apiVersion":"v1"}`)
	f.Add(
		` { "items" : [ { "metadata" : { "name" : "ä\n\u00e4" , "managedFields" : null } } , {"metadata":{"name":"b"}} ] , "kind" : "XList" , "apiVersion" : "v1" } `,
	)
	f.Add(`{"items":[{"metadata":{"name":"a"}`)
	f.Add(`{"items":[{"metadata":{"name":"a"}}]]`)
	f.Add(`{"items":[{"metadata":{"name":"a",}}],,}`)
	f.Add(`{"kind":"XList","apiVersion":"v1","items":[{"metadata":5}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 10_000 || strings.Contains(text, "managedFields") && strings.Count(text, "managedFields") > 1 {
			return
		}
		objects, token, err := readAll(t, text)
		if err != nil || !json.Valid([]byte(text)) {
			return // the reader ignores text after the list
		}
		var want struct {
			Metadata struct {
				Continue string `json:"continue"`
			} `json:"metadata"`
			Items []map[string]any `json:"items"`
		}
		if json.Unmarshal([]byte(text), &want) != nil || len(want.Items) != len(objects) && strings.Count(text, "items") == 1 {
			t.Fatalf("%q: got %d objects, want %d", text, len(objects), len(want.Items))
		}
		if strings.Count(text, `"`+"continue"+`"`) == 1 && strings.Count(text, `"metadata"`) == 1+len(objects) &&
			token != want.Metadata.Continue {
			t.Errorf("%q: the token is %q, want %q", text, token, want.Metadata.Continue)
		}
	})
}

func TestAnObjectIsReadWithoutItsManagedFields(t *testing.T) {
	t.Parallel()
	const text = `{"kind":"XList","apiVersion":"v1","metadata":{"continue":"next"},"items":[` +
		`{"metadata":{"name":"a","managedFields":[{"a":"}]\"\\"},[[]]],"labels":{"b":"c"}},"spec":{"managedFields":"mine","n":5,"f":1.5,"t":[true,null,{"x":[]}]}} ,` +
		`{"apiVersion":"v2","kind":"Y","metadata":{"namespace":"n","name":"ä\u00e4"},"data":"\u00e4\n"}]}`
	objects, token, err := readAll(t, text)
	want := []any{
		map[string]any{
			"apiVersion": "v1",
			"kind":       "X",
			"metadata":   map[string]any{"name": "a", "labels": map[string]any{"b": "c"}},
			"spec": map[string]any{
				"managedFields": "mine", "n": int64(5), "f": 1.5, "t": []any{true, nil, map[string]any{"x": []any{}}},
			},
		},
		map[string]any{"apiVersion": "v2", "kind": "Y", "metadata": map[string]any{"namespace": "n", "name": "ää"}, "data": "ä\n"},
	}
	if err != nil || token != "next" || !reflect.DeepEqual(objects, want) {
		t.Errorf("got %v, token %q: %v", objects, token, err)
	}
}

func TestInvalidPagesAreRefused(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("[", 10_001)
	for _, text := range []string{
		"", "{", `{"items"`, `{"items":[`, `{"items":[{}]}`, `{"items":5}`, `{"items":[{"metadata":{"name":"a"}}}`, `{"kind":"X","apiVersion":"v1","items":[]}`,
		`{"kind":"XList","items":[]}`, `{"kind":"XList","apiVersion":"v1","items":[] "a":1}`, `{"a" 5}`, `{5:5}`, `{"a":}`, `[]`, `{"x":` + deep,
		`{"x":` + strings.Repeat("1", 100) + `}`, `{"items":[{"metadata":{"name":"a"},"x":tru}]}`, `{"items":[{"metadata":{"name":"a"},"x":"` + "\x00" + `"}]}`,
	} {
		if objects, _, err := readAll(t, text); err == nil {
			t.Errorf("%.100q: got %v, want an error", text, objects)
		}
	}
}

// An answer over the limit ends with an error, never with partial content.
func TestAnAnswerIsBounded(t *testing.T) {
	t.Parallel()
	const start, item = `{"kind":"XList","apiVersion":"v1","items":[`, `{"metadata":{"name":"a"},"data":{"a":"%s"}},`
	discard := func(*unstructured.Unstructured) error { return nil }
	most := int64(acceptancetest.Count(3*maxObject, maxAnswer))
	read := func(from io.Reader) error {
		page := newReader(from)
		if page.most != maxAnswer {
			t.Errorf("got the limit %d, want %d", page.most, maxAnswer)
		}
		page.most = most
		_, err := page.list(discard)
		return err
	}
	large := fmt.Sprintf(item, strings.Repeat("x", maxObject-1000))
	for name, endless := range map[string][]string{
		"one object":          {start, fmt.Sprintf(item, strings.Repeat("x", 2*maxObject))},
		"a member of many":    {start, `{"metadata":{"name":"a"},"data":[`, strings.Repeat("{},", 2*maxObject/3)},
		"before the objects":  {`{"kind":"`, strings.Repeat("x", 2*maxObject)},
		"after the objects":   {start, fmt.Sprintf(item, "x"), `{"metadata":{"name":"b"}}],"x":"`, strings.Repeat("x", 2*maxObject)},
		"many within a limit": append([]string{start}, slices.Repeat([]string{large}, int(most/maxObject)+2)...),
	} {
		parts := make([]io.Reader, len(endless))
		for i, part := range endless {
			parts[i] = strings.NewReader(part)
		}
		if err := read(io.MultiReader(parts...)); !errors.Is(err, errTooLarge) {
			t.Errorf("%s: the error is %v", name, err)
		}
	}
	whole := strings.TrimSuffix(start+strings.Repeat(large, 3), ",") + "]}"
	if err := read(strings.NewReader(whole)); err != nil {
		t.Errorf("objects within the limit: %v", err)
	}
	if err := answerError(errTooLarge, ResourceKind{Resource: "pods"}); ReasonOf(err) != ReasonIncomplete ||
		err.Error() != "the API server has more pods than can be read (200000 objects, 256 MiB)" {
		t.Errorf("the error is %v", err)
	}
}

// Keys that differ only in invisible characters become one key. Every reading keeps the same value.
func TestKeysThatLookAlikeAreReadInOneOrder(t *testing.T) {
	t.Parallel()
	for range 50 {
		object, err := newReader(strings.NewReader(`{"a\u0001":"1","a\u0002":"2","b\u0003":{"c\u0004":"d\u0005"}}`)).object()
		if want := map[string]any{"a\ufffd": "2", "b\ufffd": map[string]any{"c\ufffd": "d\ufffd"}}; err != nil ||
			!reflect.DeepEqual(object.Object, want) {
			t.Fatalf("got %q: %v", object, err)
		}
	}
}
