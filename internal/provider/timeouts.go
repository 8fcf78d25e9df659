package provider

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/attributes"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// timeouts is how long each operation may take. A push waits for the server's hooks, and a merge for the checks of a
// pull request; operations that only read take less time.
type timeouts map[string]time.Duration

const (
	forCreate = "create"
	forRead   = "read" // a plan's look at the repository, too
	forUpdate = "update"
	forDelete = "delete"
)

var defaultTimeouts = timeouts{
	forCreate: 20 * time.Minute, forRead: 5 * time.Minute, forUpdate: 20 * time.Minute, forDelete: 20 * time.Minute,
}

// decodeTimeouts reads the attribute timeouts, strictly.
func decodeTimeouts(value types.Dynamic, diagnostics *diag.Diagnostics) timeouts {
	return decodeTimeoutsOf([]string{forCreate, forRead, forUpdate, forDelete}, value, diagnostics)
}

// decodeReadTimeout is decodeTimeouts for a data source.
func decodeReadTimeout(value types.Dynamic, diagnostics *diag.Diagnostics) timeouts {
	return decodeTimeoutsOf([]string{forRead}, value, diagnostics)
}

// readTimeoutAttribute is the attribute timeouts of a data source that asks a repository.
func readTimeoutAttribute() datasource.Attribute {
	return datasource.DynamicAttribute{
		Optional:            true,
		MarkdownDescription: "How long reading may take, connecting included: `{read}`, a duration such as `\"90s\"`. Default: `5m`.",
	}
}

func decodeTimeoutsOf(operations []string, value types.Dynamic, diagnostics *diag.Diagnostics) timeouts {
	t := maps.Clone(defaultTimeouts)
	readStrictly("timeouts", value, diagnostics, func(o *attributes.Object) {
		for _, operation := range operations {
			t[operation] = o.Timeout(operation, t[operation])
		}
	})
	return t
}

// timeoutCause is the cause of a context that has ended by a timeout of this provider.
type timeoutCause struct {
	operation string
	after     time.Duration
}

func (o *timeoutCause) Error() string {
	return fmt.Sprintf("%s took longer than %s", o.operation, short(o.after))
}

// during bounds a context by the time that an operation may take.
func (t timeouts) during(ctx context.Context, operation string) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, t[operation], &timeoutCause{operation, t[operation]})
}

// addEnded reports that the context ended, by a timeout or by the user; false where it has not.
func addEnded(ctx context.Context, diagnostics *diag.Diagnostics, err error) bool {
	if ctx.Err() == nil {
		return false
	}
	detail := sentence(err.Error()) + " " + mayHaveWritten(err)
	if over := (*timeoutCause)(nil); errors.As(context.Cause(ctx), &over) {
		if over.operation == forRead {
			detail = sentence(err.Error()) + " Nothing was written."
		}
		diagnostics.AddAttributeError(path.Root("timeouts"), "Timeout", fmt.Sprintf(
			"The operation took longer than timeouts.%s = %q allows: %s\n\nTo allow more, set timeouts = { %s = %q }.",
			over.operation, short(over.after), detail, over.operation, short(2*over.after)))
		return true
	}
	diagnostics.AddAttributeError(path.Root("gitops_repo"), "Interrupted", detail)
	return true
}

// mayHaveWritten says what an operation that failed may have left behind.
func mayHaveWritten(err error) string {
	switch {
	case errors.Is(err, delivery.ErrProposed):
		return "The next apply goes on from there."
	case errors.Is(err, git.ErrUnknown):
		return "The next plan shows whether anything was written."
	}
	return "The branch was unchanged when it was last read, so nothing was written then; if a slow server still accepts the commit, " +
		"the next plan shows it."
}

// short writes a duration without zeros at its end.
func short(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
