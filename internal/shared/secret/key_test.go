package secret_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

func TestAKeyIsScrubbedInEachForm(t *testing.T) {
	t.Parallel()
	first, second := strings.Repeat("canaryA/", 8), strings.Repeat("canaryB+", 4)
	key := "-----BEGIN PRIVATE KEY-----\n" + first + "\n" + second + "\n-----END PRIVATE KEY-----\n"
	forms := map[string]string{
		"as made": key, "with literal \\n": strings.ReplaceAll(key, "\n", `\n`), "indented": "  " + strings.ReplaceAll(key, "\n", "\n  "),
		"with CRLF": strings.ReplaceAll(key, "\n", "\r\n"), "without a final newline": strings.TrimSpace(key), "one line": second,
	}
	for given, text := range forms {
		if given == "one line" {
			continue
		}
		scrubber := secret.NewScrubber(secret.KeyForms(text))
		for shown, text := range forms {
			if said := scrubber.Scrub("cannot read " + text + "!"); strings.Contains(said, "canary") {
				t.Errorf("given %s, shown %s: %s", given, shown, said)
			}
		}
	}
	if scrubbed := secret.NewScrubber(secret.KeyForms("")).Scrub("text"); scrubbed != "text" {
		t.Errorf("without a key, the text became %q", scrubbed)
	}
}
