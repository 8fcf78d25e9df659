// Package timeouts has the attribute timeouts, and the error of an operation that took too long.
package timeouts

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	datasource "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/budget"
)

// Timeouts has the time of each operation. A push waits for the server's hooks, a merge for checks.
type Timeouts map[string]time.Duration

// The operations.
const (
	Create = "create"
	Read   = "read" // also in a plan
	Update = "update"
	Delete = "delete"
)

// Default has the default times.
var Default = Timeouts{
	Create: 20 * time.Minute, Read: 5 * time.Minute, Update: 20 * time.Minute, Delete: 20 * time.Minute,
}

// Tables for resources and for data sources.
var (
	Table = &fleet.Table{
		Name:    "timeouts",
		Meaning: "The attribute `timeouts` of resources: how long operations may take, connecting included.",
		Attributes: []fleet.Attribute{
			row(Create, "How long creating may take."),
			row(Read, readMeaning),
			row(Update, "How long an update may take."),
			row(Delete, "How long a destroy may take."),
		},
	}
	ReadTable = &fleet.Table{
		Name:    "timeouts of a data source",
		Meaning: "The attribute `timeouts` of data sources.",
		Attributes: []fleet.Attribute{
			row(Read, "How long reading may take, connecting included. All resources of a run share it for repositories of workloads and for "+
				"rendering charts."),
		},
	}
)

const readMeaning = "How long reading may take, which also bounds how long a plan reads the repository or cluster. For " +
	"`flotilla_agent` it is a minute at most."

func row(operation, meaning string) fleet.Attribute {
	return fleet.Attribute{Name: operation, Type: fleet.DurationType, Default: short(Default[operation]), Meaning: meaning}
}

// ReadAttribute is the attribute timeouts of a data source.
func ReadAttribute() datasource.Attribute {
	return schemas.OptionalDynamic(schemas.Setting("How long reading may take, connecting included.", fleet.ObjectType, ReadTable))
}

// Decode reads the attribute timeouts, strictly.
func Decode(table *fleet.Table, value types.Dynamic, diagnostics *diag.Diagnostics) Timeouts {
	t := maps.Clone(Default)
	tfvalue.ReadStrictly("timeouts", table, value, diagnostics, func(o *fleet.ObjectReader) {
		for _, operation := range table.Keys() {
			t[operation] = fleet.ReadTimeout(o, operation)
		}
	})
	return t
}

// Cause is the cause of a context that a timeout has ended.
type Cause struct {
	operation string
	after     time.Duration
}

func (o *Cause) Error() string {
	return fmt.Sprintf("%s took longer than %s", o.operation, short(o.after))
}

// During bounds a context. Operations with the same ledger share the time for reading artifacts: see package budget.
func (t Timeouts) During(ctx context.Context, operation string, ledger *budget.Ledger) (context.Context, context.CancelFunc) {
	over := &Cause{operation, t[operation]}
	ctx, cancel := context.WithTimeoutCause(ctx, t[operation], over)
	ctx, end := budget.With(ctx, ledger, t[operation], over)
	return ctx, func() {
		end()
		cancel()
	}
}

// AddOver reports an operation that failed after its time, unless that is reported already.
func AddOver(ctx context.Context, diagnostics *diag.Diagnostics) {
	over := (*Cause)(nil)
	if !diagnostics.HasError() || !errors.As(context.Cause(ctx), &over) ||
		slices.ContainsFunc(*diagnostics, func(one diag.Diagnostic) bool { return one.Summary() == timeoutSummary }) {
		return
	}
	diagnostics.AddAttributeError(path.Root("timeouts"), timeoutSummary, over.text(ctx, "The other errors say what is missing."))
}

const timeoutSummary = "Timeout"

func (o *Cause) text(ctx context.Context, detail string) string {
	text := fmt.Sprintf("The operation took longer than timeouts.%s = %q allows: %s", o.operation, short(o.after), detail)
	if longest := budget.Longest(ctx); longest != "" {
		text += fmt.Sprintf("\n\nWithin one run, all resources and data sources share this time for what workloads name. Most of it took: %s.",
			longest)
	}
	return text + fmt.Sprintf("\n\nTo allow more, set timeouts = { %s = %q }.", o.operation, short(2*o.after))
}

// AddEnded reports a context that ended by a timeout or by the user, and returns false if it has not.
func AddEnded(ctx context.Context, diagnostics *diag.Diagnostics, err error) bool {
	return AddEndedOf(ctx, diagnostics, err, "gitops_repo", mayHaveWritten(err))
}

// AddEndedOf is [AddEnded] at an attribute. left is a sentence about possible results of a write.
func AddEndedOf(ctx context.Context, diagnostics *diag.Diagnostics, err error, attribute, left string) bool {
	if ctx.Err() == nil {
		return false
	}
	detail := tfvalue.Sentence(err.Error()) + " " + left
	if over := (*Cause)(nil); errors.As(context.Cause(ctx), &over) {
		if over.operation == Read {
			detail = tfvalue.Sentence(err.Error()) + " Nothing was written."
		}
		diagnostics.AddAttributeError(path.Root("timeouts"), timeoutSummary, over.text(ctx, detail))
		return true
	}
	diagnostics.AddAttributeError(path.Root(attribute), "Interrupted", detail)
	return true
}

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
