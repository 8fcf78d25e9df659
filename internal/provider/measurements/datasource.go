// Package measurements implements flotilla_measurements: figures of clusters, hosts and assignments as evidence for rollouts.
package measurements

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

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
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[measurementsModel]{
		Name: "measurements", Validate: validate, Read: read,
		Description: "Measures figures of clusters, hosts and assignments with Prometheus or web servers, as evidence for " +
			"rollouts. Each figure is compared with a limit, or with the figure of clusters without the change. If a server does " +
			"not answer, the subjects of the check are `unknown` with a reason, and a rollout waits. This data source changes " +
			"nothing.",
		Attributes: map[string]schema.Attribute{
			"fleet": fleetvalue.ModelAttribute(" The state keeps its hash."),
			"checks": schemas.RequiredDynamic(schemas.Setting(
				fmt.Sprintf("The checks, up to %d. All of them have to pass.", evidence.MaxChecks),
				fleet.ObjectsType,
				CheckTable,
			) + "\n\n`rest` is the same figure of those that do not have the change yet, so that a canary is compared with the others at the " +
				"same time: the mean of them; where none is left, of those on which the change is proven; null where there is neither. A check " +
				"of the fleet has no `rest`."),
			"timeouts": timeouts.ReadAttribute(),
			"time":     schemas.ComputedText("Time of the measurement in RFC 3339."),
			"results":  results.ListAttribute("The results of the checks, in the same order."),
			"evidence": schemas.ComputedText("All figures as JSON, for rollouts."),
		},
	}.New()
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
	table.TextOrNull("message", "Why the check has no figures; null if it has some.",
		func(r *measure.Measurement) string { return r.Message }),
	table.Number("expected", "Number of clusters, hosts or assignments in the fleet; 1 for the fleet.",
		func(r *measure.Measurement) int { return r.Expected }),
	table.Number("measured", "Number of figures with a value.", func(r *measure.Measurement) int { return r.Measured() }),
	table.Number("passed_over", "Number of series without a subject or about subjects outside of the fleet.",
		func(r *measure.Measurement) int { return r.Others + r.Unlabelled }),
	table.Texts("figures", fmt.Sprintf("The figures, as in `berlin-1: 0.9 %% (340 samples)`: first those without a value, with the "+
		"reason, then from the highest; %d of them at most.", maxListed), func(r *measure.Measurement) []string { return r.Lines(maxListed) }),
	table.Texts("warnings", "Warnings of the server, such as stores of Thanos that did not answer.",
		func(r *measure.Measurement) []string { return r.Warnings }),
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

// The bounds of texts, in bytes.
const (
	maxName  = 63
	maxUnit  = 16
	maxLabel = 128
	maxURL   = 2048
	maxQuery = 16 << 10
)

func decodeChecks(value types.Dynamic, diagnostics *diag.Diagnostics) []measure.Check {
	given := tfvalue.Plain(value)
	if given == nil {
		return nil
	}
	reader := &fleet.Reader{}
	at := (*fleet.Path)(nil).Attribute("checks")
	objects := reader.List(CheckTable, at, given)
	if len(objects) > evidence.MaxChecks {
		reader.Report(at, "has %d checks, and %d are the most", len(objects), evidence.MaxChecks)
		objects = objects[:evidence.MaxChecks]
	}
	checks := make([]measure.Check, 0, len(objects))
	for _, o := range objects {
		check := decodeCheck(o)
		if slices.ContainsFunc(checks, func(other measure.Check) bool { return other.Name == check.Name && check.Name != "" }) {
			o.Report("name", "%q is the name of another check, too", check.Name)
		}
		checks = append(checks, check)
	}
	tfvalue.AddFindings(diagnostics, path.Root("checks"), "Invalid checks", tfvalue.Inner(reader.Findings))
	return checks
}

func decodeCheck(o *fleet.ObjectReader) measure.Check {
	of := evidence.SubjectKind(o.OneOf("of"))
	o.Require("of", "is required: what the figures are of, "+wording.Either(evidence.SubjectKindNames(), ""))
	check := measure.Check{
		Name:    line(o, "name", maxName, true),
		Unit:    line(o, "unit", maxUnit, false),
		Of:      of,
		Pass:    o.Required("pass"),
		Fail:    o.Text("fail"),
		Samples: o.Text("samples"),
	}
	for _, one := range []struct{ name, source string }{{"pass", check.Pass}, {"fail", check.Fail}} {
		if one.source == "" {
			continue
		}
		for _, problem := range evidence.CheckExpression(one.source, of, o.Has("samples")) {
			o.Report(one.name, "%s", problem)
		}
	}
	hasPrometheus, hasWeb := o.Has("prometheus"), o.Has("web")
	switch {
	case hasPrometheus && hasWeb:
		o.Report("web", "is set, and prometheus, too: a check has one of them")
	case !hasPrometheus && !hasWeb:
		o.Report("prometheus", "is required, or web: where the figures come from")
	}
	check.Prometheus = fleet.ReadObject(o, "prometheus", func(from *fleet.ObjectReader) *measure.Prometheus {
		return decodePrometheus(from, of)
	})
	if check.Prometheus != nil && len(check.Samples) > maxQuery {
		o.Report("samples", "is longer than %d bytes", maxQuery)
	}
	check.Web = fleet.ReadObject(o, "web", func(from *fleet.ObjectReader) *measure.Web { return decodeWeb(from, of) })
	if check.Web != nil && check.Samples != "" {
		reportAll(o, "samples", measure.CheckAnswer(check.Samples))
	}
	o.Finish()
	return check
}

func decodePrometheus(o *fleet.ObjectReader, of evidence.SubjectKind) *measure.Prometheus {
	from := &measure.Prometheus{
		URL:     address(o, measure.CheckPrometheusURL),
		Query:   o.Required("query"),
		Headers: headers(o),
		Labels:  o.TextMap("labels"),
		Timeout: timeout(o),
	}
	if len(from.Query) > maxQuery {
		o.Report("query", "is longer than %d bytes", maxQuery)
	}
	for _, name := range slices.Sorted(maps.Keys(from.Labels)) {
		switch allowed := measure.Labels[of]; {
		case of == "":
		case len(allowed) == 0:
			o.Report("labels", "is set, and the figure of a check of the fleet needs no label")
			return from
		case !slices.Contains(allowed, name):
			o.Report("labels", "has %q, and a check of a %s has the labels %s%s",
				name, of, wording.List(allowed, len(allowed)), fleet.DidYouMean(name, allowed))
		case len(from.Labels[name]) > maxLabel || !wording.IsLine(from.Labels[name]):
			o.Report("labels", "the name for %q must be one line of at most %d bytes", name, maxLabel)
		}
	}
	return from
}

func decodeWeb(o *fleet.ObjectReader, of evidence.SubjectKind) *measure.Web {
	from := &measure.Web{Value: fleet.ReadTextOrDefault(o, "value"), Headers: headers(o), Timeout: timeout(o)}
	from.URL = address(o, func(text string) string {
		if of == "" {
			return ""
		}
		return measure.CheckWebURL(text, of)
	})
	reportAll(o, "value", measure.CheckAnswer(from.Value))
	return from
}

// address reads a server's URL. Errors omit it, because it may have a password.
func address(o *fleet.ObjectReader, check func(string) string) string {
	text := o.Required("url")
	if text == "" {
		return ""
	}
	if problem := check(text); problem != "" {
		o.Report("url", "%s", problem)
	} else if len(text) > maxURL {
		o.Report("url", "is longer than %d bytes", maxURL)
	}
	return text
}

func headers(o *fleet.ObjectReader) map[string]string {
	given := o.TextMap("headers")
	reportAll(o, "headers", measure.CheckHeaders(given, false))
	return given
}

func timeout(o *fleet.ObjectReader) time.Duration {
	given := fleet.ReadTimeout(o, "timeout")
	if given > measure.MaxTimeout {
		o.Report("timeout", "is longer than %s", measure.MaxTimeout)
	}
	return given
}

func line(o *fleet.ObjectReader, name string, most int, required bool) string {
	text := o.Text(name)
	if required {
		text = o.Required(name)
	}
	if text != "" && (len(text) > most || !wording.IsLine(text)) {
		o.Report(name, "must be one line of at most %d bytes", most)
	}
	return text
}

func reportAll(o *fleet.ObjectReader, name string, problems []string) {
	for _, problem := range problems {
		o.Report(name, "%s", problem)
	}
}

// CheckTable describes a check.
var CheckTable = &fleet.Table{
	Name: "check",
	Meaning: "One of `checks` of `flotilla_measurements`, with either `prometheus` or `web`. Expressions are " +
		"[CEL](https://cel.dev), in which a whole number is written as a double: `value == 1.0`.",
	Attributes: []fleet.Attribute{
		{Name: "name", Required: true, Meaning: "Name in the plan, such as `errors`."},
		{Name: "of", Required: true, Allowed: evidence.SubjectKindNames(),
			Meaning: "Subject of each figure: one cluster as a whole, one host with all its assignments, one assignment on all clusters of " +
				"its host, or the fleet. For a `flotilla_rollout`: a cluster or the fleet."},
		{Name: "prometheus", Type: fleet.ObjectType, Of: prometheusTable,
			Meaning: "One query for the whole fleet, evaluated at the time of the measurement."},
		{Name: "web", Type: fleet.ObjectType, Of: webTable,
			Meaning: "One GET request for each cluster, host or assignment, or one for the fleet."},
		{Name: "samples", Meaning: "Number of events behind a figure: a second query with the same labels, or a second expression over the " +
			"same answer. Samples are the weights in the mean `rest`."},
		{Name: "pass", Required: true,
			Meaning: "Whether the figure passes: an expression over `value` (a double), `samples` and `rest` (a double or null). A figure " +
				"that passes is ready. A figure that neither passes nor fails is progressing, and a rollout waits for it until its " +
				"`progress_deadline`."},
		{Name: "fail", Meaning: "Whether the figure has failed: an expression over the same variables. It overrides `pass`."},
		{Name: "unit", Meaning: "Unit after figures in texts, such as `\"%\"`."},
	},
}

var (
	headersAttribute = fleet.Attribute{
		Name:         "headers",
		Type:         fleet.TextMapType,
		NullElements: true,
		Meaning: "HTTP headers, such as `X-Scope-OrgID`. The state contains them, so put credentials into the provider's " +
			"`measurements`.",
	}
	timeoutAttribute = fleet.Attribute{
		Name:    "timeout",
		Type:    fleet.DurationType,
		Default: measure.DefaultTimeout.String(),
		Meaning: "Time limit of one request, at most `2m`.",
	}
)

var prometheusTable = &fleet.Table{
	Name: "prometheus",
	Meaning: "A PromQL query. The labels of each series name its subject: `cluster`, `host` (`<cluster type>` or " +
		"`clusters/<cluster>`), or `assignment` (`<host>/<deployment target>`), which `host` and `deployment_target` can replace. " +
		"Series about other subjects are counted and ignored. A subject without a series is `unknown`, and a rollout waits for it. " +
		"A cluster without failures has no series of them, so write `(failed or 0 * all) / all`, and not `failed / all`.",
	Attributes: []fleet.Attribute{
		{Name: "url", Required: true, Meaning: "URL of the server, without `/api/v1`."},
		{Name: "query", Required: true, Meaning: "The query, in PromQL."},
		{Name: "labels", Type: fleet.TextMapType, NullElements: true,
			Meaning: "Other names of these labels, such as `{cluster = \"k8s_cluster\"}`."},
		headersAttribute,
		timeoutAttribute,
	},
}

var webTable = &fleet.Table{
	Name:    "web",
	Meaning: "A GET request. Redirects are not followed.",
	Attributes: []fleet.Attribute{
		{Name: "url", Required: true,
			Meaning: "The URL, with `{cluster}`, `{host}`, `{assignment}` or `{deployment_target}` for the name of the subject."},
		{Name: "value", Default: measure.DefaultValue,
			Meaning: "The figure: an expression over `status` and `body` with a number or a bool (1 or 0) as its result. `body` is a value if " +
				"the answer is JSON, else a text."},
		headersAttribute,
		timeoutAttribute,
	},
}
