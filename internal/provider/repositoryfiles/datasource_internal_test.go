package repositoryfiles

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
)

func TestRepositoryErrorsAreReportedAtTheURL(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		ctx      context.Context
		complete bool // all credentials known
		url      string
		err      error
		summary  string
		detail   string
	}{
		{t.Context(), true, "https://x/y", git.ErrUnauthorized, "Repository refuses the credentials", "git.credentials"},
		{t.Context(), false, "https://x/y", git.ErrUnauthorized, "Credentials are not known yet", "-target"},
		{t.Context(), false, "https://x/y", git.ErrNotFound, "Credentials are not known yet", "-target"},
		{t.Context(), false, "https://x/y", git.ErrUnreachable, "Repository cannot be reached", "unreachable"},
		{t.Context(), true, "https://x/y", git.ErrNotFound, "Repository does not exist", "a private repository without credentials"},
		{t.Context(), true, "/x/y", git.ErrNotFound, "Repository does not exist", "not found."},
		{t.Context(), true, "ssh://x/y", git.ErrHostKey, "Host key cannot be verified", "host key"},
		{t.Context(), true, "https://x/y", git.ErrTooLarge, "Repository is too large", "cannot filter"},
		{t.Context(), true, "https://x/y", errors.New("a tree is malformed"), "Repository cannot be read", "malformed"},
		{ended, true, "https://x/y", context.Canceled, "Interrupted", "canceled"},
	} {
		var diagnostics diag.Diagnostics
		addError(
			test.ctx,
			&connection.Connection{Complete: test.complete},
			&diagnostics,
			test.url,
			fmt.Errorf("repository %q: %w", test.url, test.err),
		)
		diags := diagnostics.Errors()
		if len(diags) != 1 || diags[0].Summary() != test.summary || !strings.Contains(diags[0].Detail(), test.detail) {
			t.Errorf("%v: got %v", test.err, diags)
			continue
		}
		if at := diags[0].(diag.DiagnosticWithPath).Path(); !at.Equal(path.Root("url")) {
			t.Errorf("%v is reported at %s", test.err, at)
		}
	}
}
