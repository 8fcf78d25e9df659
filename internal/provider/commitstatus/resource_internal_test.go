package commitstatus

import (
	"context"
	"net/url"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// FuzzParseID checks that an ID made from the imported attributes has the same attributes.
func FuzzParseID(f *testing.F) {
	for _, seed := range []string{
		"https://github.com/team/app#2222222222222222222222222222222222222222:flotilla/dev", "https://x/a/b?forge=gitea&api_url=https://x/#c:a:b#c", "?#:", "a?forge=gitea&forge=x#:", "a?%zz#b:c",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, id string) {
		m, ok := parseID(id)
		if !ok {
			return
		}
		var diagnostics diag.Diagnostics
		validate(context.Background(), m, &diagnostics)
		again := m.URL.ValueString()
		if query := (url.Values{"forge": {m.Forge.ValueString()}, "api_url": {m.APIURL.ValueString()}}).Encode(); !m.Forge.IsNull() ||
			!m.APIURL.IsNull() {
			again += "?" + query
		}
		again += "#" + m.Commit.ValueString() + ":" + m.Context.ValueString()
		if other, ok := parseID(again); !ok || *other != *m {
			t.Errorf("%q is read as %+v, and %q as %+v", id, m, again, other)
		}
	})
}
