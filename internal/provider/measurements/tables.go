package measurements

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/measure"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// CheckTable describes a check.
var CheckTable = &fleet.Table{
	Name: "check",
	Meaning: "One of `checks` of `flotilla_measurements`, with either `prometheus` or `web`. Expressions are " +
		"[CEL](https://cel.dev), in which a whole number is written as a double: `value == 1.0`.",
	Attributes: []fleet.Attribute{
		{Name: "name", Required: true, Meaning: "Name in the plan, such as `errors`."},
		{
			Name:     "of",
			Required: true,
			Allowed:  evidence.OfNames(),
			Meaning: "Subject of each figure: one cluster as a whole, one host with all its assignments, one assignment on all " +
				"clusters of its host, or the fleet. For a `flotilla_rollout`: a cluster or the fleet.",
		},
		{
			Name:    "prometheus",
			Type:    fleet.ObjectType,
			Of:      prometheusTable,
			Meaning: "One query for the whole fleet, evaluated at the time of the measurement.",
		},
		{
			Name:    "web",
			Type:    fleet.ObjectType,
			Of:      webTable,
			Meaning: "One GET request for each cluster, host or assignment, or one for the fleet.",
		},
		{
			Name: "samples",
			Meaning: "Number of events behind a figure: a second query with the same labels, or a second expression over the same " +
				"answer. Samples are the weights in the mean `rest`.",
		},
		{
			Name:     "pass",
			Required: true,
			Meaning: "Whether the figure passes: an expression over `value` (a double), `samples` and `rest` (a double or null). A " +
				"figure that passes is ready. A figure that neither passes nor fails is progressing, and a rollout waits for it " +
				"until its `progress_deadline`.",
		},
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
		{
			Name:         "labels",
			Type:         fleet.TextMapType,
			NullElements: true,
			Meaning:      "Other names of these labels, such as `{cluster = \"k8s_cluster\"}`.",
		},
		headersAttribute,
		timeoutAttribute,
	},
}

var webTable = &fleet.Table{
	Name:    "web",
	Meaning: "A GET request. Redirects are not followed.",
	Attributes: []fleet.Attribute{
		{
			Name:     "url",
			Required: true,
			Meaning:  "The URL, with `{cluster}`, `{host}`, `{assignment}` or `{deployment_target}` for the name of the subject.",
		},
		{
			Name:    "value",
			Default: measure.DefaultValue,
			Meaning: "The figure: an expression over `status` and `body` with a number or a bool (1 or 0) as its result. `body` is " +
				"a value if the answer is JSON, else a text.",
		},
		headersAttribute,
		timeoutAttribute,
	},
}
