package renderer

import (
	"encoding/json"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// asLibraryWrites compares what toYAML writes with what the library does, where it can read the JSON.
func asLibraryWrites(t *testing.T, text string) {
	t.Helper()
	want, err := yaml.JSONToYAML([]byte(text))
	if err != nil {
		return
	}
	got, err := toYAML([]byte(text))
	if err != nil || string(got) != string(want) {
		t.Errorf("%s: got %q (%v), want %q", text, got, err, want)
	}
}

var scalars = []string{
	"0", "-0", "1.0", "-1.50", "1e3", "1E+21", "1e-7", "0.1", "1e999", "123456789012345678", "9223372036854775807", "9223372036854775808",
	"18446744073709551615", "18446744073709551616", "-9223372036854775808", "-9223372036854775809", "true", "null", "{}", "[]", "[[]]",
	`""`, `"yes"`, `"0x1f"`, `"0o7"`, `"010"`, `"1e3"`, `"1:30"`, `"2001-02-03"`, `"~"`, `"<<"`, `"="`, `"- a"`, `"a: b"`, `"a #b"`, `" a "`, `"a\nb\n"`,
	`"a\n\n  b"`, `"\ta"`, `"\u0000\u001b\u0085\u2028\ufeff"`, `"\u003c\u0026\/"`, `"\ud83d\ude00"`, "\"\x7f\"", "\"\u0080ä😀\"", `"%a"`, `"@a"`, `"*a"`, `"'\""`,
	`"` + strings.Repeat("long words ", 30) + `"`, `"` + strings.Repeat("x", 2000) + `"`,
}

func TestJSONIsWrittenAsByTheLibrary(t *testing.T) {
	for _, scalar := range scalars {
		for _, text := range []string{scalar, `{"a": ` + scalar + `}`, `[{"b": [` + scalar + `, ` + scalar + `]}]`} {
			asLibraryWrites(t, text)
		}
		if scalar[0] == '"' {
			asLibraryWrites(t, `{"z": 1, `+scalar+`: {"a10": 1, "a2": 2, "A": 3, "_": 4, "1": 5}}`)
		}
	}
}

func FuzzToYAML(f *testing.F) {
	for _, scalar := range scalars {
		f.Add(`{"a": [` + scalar + `]}`)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if json.Valid([]byte(text)) {
			asLibraryWrites(t, text)
		}
	})
}
