package fleet_test

import (
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

func TestParseJSONRefusesInvalidText(t *testing.T) {
	for text, want := range map[string]string{
		"":                          "EOF",
		" \n":                       "EOF",
		"{":                         "unexpected EOF",
		`{"a`:                       "unexpected EOF",
		`"\`:                        "unexpected EOF",
		"[1,]":                      "invalid character",
		`{"a" 1}`:                   "invalid character",
		`{"a":1 "b"}`:               "invalid character",
		`{1:1}`:                     "object member name must be a string",
		`{"a":1} {"b":2}`:           "text follows the JSON value at offset 7",
		`{"a":1,"b":{"c":1,"c":2}}`: `key "c" appears twice, the second time at offset 21`,
		`{"a":1,"\u0061":2}`:        `key "a" appears twice`,
		`{"a":1}x`:                  "text follows",
		"nul":                       "unexpected EOF",
		"nulL":                      "invalid character 'L'",
		"+1":                        "invalid character '+'",
		"1.":                        "unexpected EOF",
		"1.x":                       "invalid character 'x'",
		"[1e]":                      "invalid character",
		"-":                         "unexpected EOF",
		"01":                        "text follows",
		"\"\t\"":                    "invalid character",
		`"\x"`:                      "invalid escape sequence",
		strings.Repeat("[", 2_000) + strings.Repeat("]", 2_000): "nested deeper than 1000 levels",
		strings.Repeat("1", 1_001):                              "a number of 1001 characters is longer than the 1000 that a number may have",
	} {
		if _, err := fleet.ParseJSON(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: got error %v, want %q", text, err, want)
		}
	}
	if _, err := fleet.CanonicalNumber(json.Number(strings.Repeat("1", 1_001))); err == nil {
		t.Error("CanonicalNumber accepts a number of 1001 digits")
	}
}

// FuzzReadJSON compares the reader with encoding/json, and checks its bounds.
func FuzzReadJSON(f *testing.F) {
	for _, text := range []string{
		`{"b":1,"a":[1.50,-0,1e999,"\u2028<é"]}`, `"\ud800"`, "[[[]]]", `{"a":{"a":{}}}`, "0.1e-5000", `"` + "\xff\xc3" + `"`, "\x00", "nul", "{\"\xff\":1,\"\ufffd\":2}",
		strings.Repeat("[", 999) + "1" + strings.Repeat("]", 999), `{"a":1,}`, "1 2", `"\"`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value any
		var err error
		fleettest.Bounded(t, text, func() { value, err = fleet.ParseJSON(text) })
		want, wantErr := slowJSON(text)
		if (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(value, want) {
			if err == nil || !strings.Contains(err.Error(), "longer than the") {
				t.Fatalf("%q: got %#v, %v, want %#v, %v", text, value, err, want, wantErr)
			}
		}
	})
}

// slowJSON reads a value with encoding/json, token by token.
func slowJSON(text string) (any, error) {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	value, err := readSlowValue(decoder, 0)
	if err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text follows")
	}
	return value, nil
}

func readSlowValue(decoder *json.Decoder, depth int) (any, error) {
	if depth > 1000 {
		return nil, errors.New("nested too deep")
	}
	token, err := decoder.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			element, err := readSlowValue(decoder, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, element)
		}
		_, err := decoder.Token()
		return list, err
	case json.Delim('{'):
		object := map[string]any{}
		for decoder.More() {
			token, err := decoder.Token()
			if err != nil {
				return nil, err
			}
			key, ok := token.(string)
			if !ok {
				return nil, errors.New("a key is not a string")
			}
			if _, twice := object[key]; twice {
				return nil, errors.New("a key appears twice")
			}
			if object[key], err = readSlowValue(decoder, depth+1); err != nil {
				return nil, err
			}
		}
		_, err := decoder.Token()
		return object, err
	}
	return token, nil
}

// Dense values take the most memory.
func TestReadingJSONIsBounded(t *testing.T) {
	units := []string{"1,", `{"":0},`, "[[]],", "{},", `"a",`, "[0],", `{"":""},`, `"\u0001",`, `{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9},`}
	for _, unit := range units[:acceptancetest.Count(3, len(units))] {
		t.Run(unit, func(t *testing.T) {
			text := "[" + strings.Repeat(unit, (1<<20-8)/len(unit)) + "1]"
			fleettest.Bounded(t, text, func() {
				if _, err := fleet.ParseJSON(text); err != nil {
					t.Error(err)
				}
			})
			fleettest.Bounded(t, text, func() {
				if _, err := fleet.ParseJSON(text[:len(text)-1]); err == nil {
					t.Error("an unterminated list is accepted")
				}
			})
		})
	}
}
