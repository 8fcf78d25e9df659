// Package measurements implements flotilla_measurements: figures of clusters, hosts and assignments as evidence for rollouts.
package measurements

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/measure"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[measurementsModel]{Name: "measurements", Schema: definition(), Validate: validate, Read: read}.New()
}

func definition() schema.Schema {
	return schema.Schema{
		MarkdownDescription: "Measures figures of clusters, hosts and assignments with Prometheus or web servers, as evidence for " +
			"rollouts. Each figure is compared with a limit, or with the figure of clusters without the change. If a server does " +
			"not answer, the subjects of the check are `unknown` with a reason, and a rollout waits. This data source changes " +
			"nothing.",
		Attributes: map[string]schema.Attribute{
			"fleet": fleetvalue.ModelAttribute(" The state keeps its hash."),
			"checks": schemas.RequiredDynamic(
				schemas.Setting(
					fmt.Sprintf("The checks, up to %d. All of them have to pass.", evidence.MaxChecks),
					fleet.ObjectsType,
					CheckTable,
				) + "\n\n`rest` is the same figure of those that do not have the change yet, so that a canary is compared with the others at " +
					"the same time: the mean of them; where none is left, of those on which the change is proven; null where there is neither. A " +
					"check of the fleet has no `rest`.",
			),
			"timeouts": timeouts.ReadAttribute(),
			"time":     schemas.ComputedText("Time of the measurement in RFC 3339."),
			"results":  results.ListAttribute("The results of the checks, in the same order."),
			"evidence": schemas.ComputedText("All figures as JSON, for rollouts."),
		},
	}
}

type measurementsModel struct {
	Fleet    types.Object  `tfsdk:"fleet"`
	Checks   types.Dynamic `tfsdk:"checks"`
	Timeouts types.Dynamic `tfsdk:"timeouts"`
	Time     types.String  `tfsdk:"time"`
	Results  types.List    `tfsdk:"results"`
	Evidence types.String  `tfsdk:"evidence"`
}

// maxListed bounds the listed figures of a check.
const maxListed = 100

var results = table.Definition[*measure.Measurement]{
	table.Text("name", "Name of the check.", func(r *measure.Measurement) string { return r.Name }),
	table.Text("of", "Kind of subject of its figures.", func(r *measure.Measurement) string { return string(r.Of) }),
	table.TextOrNull(
		"message",
		"Why the check has no figures; null if it has some.",
		func(r *measure.Measurement) string { return r.Message },
	),
	table.Number(
		"expected",
		"Number of clusters, hosts or assignments in the fleet; 1 for the fleet.",
		func(r *measure.Measurement) int { return r.Expected },
	),
	table.Number("measured", "Number of figures with a value.", func(r *measure.Measurement) int { return r.Measured() }),
	table.Number(
		"passed_over",
		"Number of series without a subject or about subjects outside of the fleet.",
		func(r *measure.Measurement) int { return r.Others + r.Unlabelled },
	),
	table.Texts(
		"figures",
		fmt.Sprintf(
			"The figures, as in `berlin-1: 0.9 %% (340 samples)`: first those without a value, with the reason, then from the highest; %d of "+
				"them at most.",
			maxListed,
		),
		func(r *measure.Measurement) []string { return r.Lines(maxListed) },
	),
	table.Texts(
		"warnings",
		"Warnings of the server, such as stores of Thanos that did not answer.",
		func(r *measure.Measurement) []string { return r.Warnings },
	),
}

func validate(m *measurementsModel, diagnostics *diag.Diagnostics) {
	decodeChecks(m.Checks, diagnostics)
}

func read(ctx context.Context, c *connection.Connection, m *measurementsModel, diagnostics *diag.Diagnostics) {
	checks := decodeChecks(m.Checks, diagnostics)
	value := fleetvalue.DecodeObject(m.Fleet, diagnostics)
	subjects := subjectsOf(value, diagnostics)
	if diagnostics.HasError() {
		return
	}
	at := c.Now()
	var found []measure.Measurement
	if c.Measure != nil {
		found = c.Measure.Measure(ctx, checks, subjects)
		warn(found, diagnostics)
	} else {
		found = measure.UnaskedMeasurements(checks, subjects, "the measurements of the provider, with its credentials, are not known yet")
	}
	document := evidence.Measurements{Environment: value.Environment, Time: at, Checks: make([]evidence.Check, len(found))}
	for i := range found {
		document.Checks[i] = found[i].Check
	}
	m.Fleet = fleetvalue.Hashed(m.Fleet)
	m.Time = types.StringValue(tfvalue.TimeText(at))
	m.Evidence = schemas.Evidence(document.Marshal(), "measure with fewer checks, or of hosts in place of assignments", diagnostics)
	m.Results = results.List(table.Pointers(found))
}

// warn reports checks that would make a rollout wait forever.
func warn(results []measure.Measurement, diagnostics *diag.Diagnostics) {
	for i := range results {
		r := &results[i]
		for _, problem := range r.Problems() {
			tfvalue.AddWarningf(diagnostics, path.Root("checks"), "Check decides nothing",
				"check %q: %s", r.Name, problem)
		}
	}
}

// subjectsOf returns the names of all subjects.
func subjectsOf(value fleet.Value, diagnostics *diag.Diagnostics) measure.Subjects {
	result, _, found := pipeline.Schedule(value)
	fleetvalue.AddErrors(diagnostics, found)
	if diagnostics.HasError() {
		return nil
	}
	subjects := measure.Subjects{}
	for _, host := range result.Hosts {
		if host.Cluster != nil {
			subjects[evidence.OfCluster] = append(subjects[evidence.OfCluster], host.Cluster.Name)
		}
	}
	hosts := map[string]bool{}
	for _, assignment := range result.Assignments {
		hosts[assignment.Host.Name] = true
		subjects[evidence.OfAssignment] = append(subjects[evidence.OfAssignment], assignment.Key())
	}
	subjects[evidence.OfHost] = slices.Sorted(maps.Keys(hosts))
	return subjects
}
