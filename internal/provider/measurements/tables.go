package measurements

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/measure"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// CheckTable describes a check.
var CheckTable = &fleet.Table{
	Name: "check",
	Meaning: "One of `checks` of `flotilla_measurements`. It has either `prometheus` or `web`. Expressions are [CEL](https://cel.dev), " +
		"where a whole number is written as a double: `value == 1.0`.",
	Attributes: []fleet.Attribute{
		{Name: "name", Required: true, Meaning: "The plan calls it so: `errors`."},
		{
			Name:     "of",
			Required: true,
			Allowed:  evidence.OfNames(),
			Meaning: "The subject of each figure: a whole cluster, a whole host, one assignment on all clusters " +
				"of its host, or the fleet. For a `flotilla_rollout` it is a cluster or the fleet.",
		},
		{
			Name:    "prometheus",
			Type:    fleet.ObjectType,
			Of:      prometheusTable,
			Meaning: "One query for the whole fleet, evaluated at the time of the reading.",
		},
		{
			Name:    "web",
			Type:    fleet.ObjectType,
			Of:      webTable,
			Meaning: "A GET request for each cluster, host or assignment; of the fleet there is one request.",
		},
		{
			Name: "samples",
			Meaning: "How many events a figure is of: a second query with the same labels, or a second expression over the same answer. With " +
				"it, `rest` is weighted by samples.",
		},
		{
			Name:     "pass",
			Required: true,
			Meaning: "Whether the figure passes, over `value` (a double), `samples` and `rest` (a double or null). A figure that passes is " +
				"ready; one that neither passes nor fails is progressing: a rollout waits for it, until its `progress_deadline`.",
		},
		{Name: "fail", Meaning: "Whether the figure has failed, over the same. It wins."},
		{Name: "unit", Meaning: "The unit that is written after figures, such as `\"%\"`."},
	},
}

var (
	headersAttribute = fleet.Attribute{
		Name:         "headers",
		Type:         fleet.TextMapType,
		NullElements: true,
		Meaning:      "Headers, which are in the state, such as `X-Scope-OrgID`. Credentials belong to the provider's `measurements`.",
	}
	timeoutAttribute = fleet.Attribute{
		Name:    "timeout",
		Type:    fleet.DurationType,
		Default: measure.DefaultTimeout.String(),
		Meaning: "How long one request may take, at most `2m`.",
	}
)

var prometheusTable = &fleet.Table{
	Name: "prometheus",
	Meaning: "A query. The labels of each series of the result name its subject: `cluster`, `host` (`<cluster type>` or " +
		"`clusters/<cluster>`), or `assignment` (`<host>/<deployment target>`), or `host` and `deployment_target`. " +
		"Series about unknown subjects are ignored and counted. A figure without a series is `unknown`, and waited for. A " +
		"cluster without failures has no series of them, so write `(failed or 0 * all) / all`, and not `failed / all`.",
	Attributes: []fleet.Attribute{
		{Name: "url", Required: true, Meaning: "The part of the URL before `/api/v1`."},
		{Name: "query", Required: true, Meaning: "The query, in PromQL."},
		{
			Name:         "labels",
			Type:         fleet.TextMapType,
			NullElements: true,
			Meaning:      "Other names for these labels, as in `{cluster = \"k8s_cluster\"}`.",
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
			Meaning: "The figure, a number or a bool (1 or 0), over `status` and `body`, which is a value where the answer is JSON, else a text.",
		},
		headersAttribute,
		timeoutAttribute,
	},
}
