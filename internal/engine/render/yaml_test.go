package render

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// longNumber matches numbers that the library does not order. Their order depends on the map.
var longNumber = regexp.MustCompile(`\pN{18}`)

func TestOrderOfKeysWithLongNumbersIsAlwaysTheSame(t *testing.T) {
	object := map[string]any{"x=0": 1, "x1": 2, "x10000000000000000000000000000000": 3, "x20000000000000000000000000000000": 4}
	const want = "x=0: 1\nx1: 2\nx10000000000000000000000000000000: 3\nx20000000000000000000000000000000: 4\n"
	for range 100 {
		if got, err := (&yamlWriter{}).marshal(object); err != nil || got != want {
			t.Fatalf("got %v\n%s\nwant\n%s", err, got, want)
		}
	}
}

// Without quotes, a key "<<" would merge its object into the parent, and some readers fail on "=".
func TestSpecialKeysOfYAMLAreTexts(t *testing.T) {
	object := map[string]any{"<<": map[string]any{"kubeConfig": "<<", "b\nc": 1}, "=": "=", "a": "b"}
	for name, write := range map[string]func(any) (string, error){"writer": (&yamlWriter{}).marshal, "library": libraryYAML} {
		text, err := write(object)
		if err != nil {
			t.Fatal(err)
		}
		var read map[string]any
		if err := yaml.Unmarshal([]byte(text), &read); err != nil || !reflect.DeepEqual(read, object) || !strings.Contains(text, "\"<<\":") ||
			!strings.Contains(text, `"=": "="`) {
			t.Errorf("%s: %v: %s is read as %v", name, err, text, read)
		}
	}
}

// FuzzYAMLWriter compares the fast writer with the library, byte by byte.
func FuzzYAMLWriter(f *testing.F) {
	for _, text := range []string{
		`{"b":"x","a":{"c":[1,{"d":"yes","e":[[],{},[{"f":null}]]}]},"a10":1,"a2":true}`,
		`{"A_B":"mysql://host:3306/db","AB":"a: b","A1":"#","e":"a #b","f":"a:b","g":" a","h":"a "}`,
		`{"multi":"a\nb\n","nested":{"multi":"a\n\n  b"},"é":"grüße","z":"0x1f","s":"~","u":"1_000"}`,
		`[1.5,"1.5",1e300,"null",-0.0,"0123",{"":""},"y","on: x","-","?","@a","a@b","%","a%"]`,
		`{"a":"a\n b\n","b":"a\n\nb\n\n","c":"\na","d":" a\nb","e":"a \nb","f":"a\nb ","g":"#\n- a:","h":"---\n...\n","i":"\t\n"}`,
		`{"<<":{"=":"<<","a":1.50,"b":["=",{"<<":null}]},"a":"x\ny","z\n":1}`, `["<<"]`, `{"=":1e400}`,
		`"text"`, `3`, `[]`, `{}`, `null`, `"a\nb"`, `{"x00":{"x0":1,"x1":2},"x01":1,"x1":2,"x10":3}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		value, err := fleet.ParseJSON(text)
		if err != nil {
			return
		}
		if canonical, err := fleet.CanonicalJSON(value); err != nil || longNumber.MatchString(canonical) {
			return
		}
		value = natural(value)
		writer := &yamlWriter{}
		for range 2 { // the second time from the cache
			got, err := writer.marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			want, err := libraryYAML(value)
			if err != nil {
				t.Fatal(err)
			}
			if got != want {
				t.Fatalf("%s is\n%s\nwant, as by the library,\n%s", text, got, want)
			}
		}
	})
}
