package compliance

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// FeedbackTable describes the attribute feedback.
var FeedbackTable = &fleet.Table{
	Name: "feedback",
	Meaning: "The attribute `feedback` of `flotilla_compliance`: where reports of clusters come from. Where several have a report " +
		"about a cluster, the first one in this order wins. Empty: no report is collected, everything is `unknown`, and `evidence` still " +
		"has its time.",
	Attributes: []fleet.Attribute{
		{
			Name:    "clusters",
			Type:    fleet.BoolOrObjectType,
			Of:      askingTable,
			Default: false,
			Meaning: "Whether to ask each cluster of the fleet that the provider's `clusters` has, and how.",
		},
		{
			Name: "hub",
			Meaning: "The name of one of the provider's `clusters`, whose Argo CD deploys to the others. An Application belongs to a cluster " +
				"whose `destination.name` is its name.",
		},
		{Name: "reports", Type: fleet.ObjectsType, Of: reportTable, Meaning: "Reports from any other source."},
		{
			Name:    "commit_statuses",
			Type:    fleet.BoolOrObjectType,
			Of:      statusesTable,
			Default: false,
			Meaning: "Whether to read the commit statuses that agents reported to the Git host, and which. A success counts as ready, " +
				"so an agent has to report it only after its health checks.",
		},
	},
}

var askingTable = &fleet.Table{
	Name:       "asking of clusters",
	Meaning:    "How the clusters of a fleet are asked.",
	Attributes: connection.AskingAttributes(),
}

var reportVerdicts = []string{string(verdict.Ready), string(verdict.Progressing), string(verdict.Failed), string(verdict.Unknown)}

var reportTable = &fleet.Table{
	Name: "report",
	Meaning: "A report about a cluster, or about one assignment on it. A failure of a cluster as a whole halts rollouts there, and rolls " +
		"nothing back: it does not say which assignment has failed.",
	Attributes: []fleet.Attribute{
		{Name: "cluster", Required: true, Meaning: "Name of the cluster."},
		{Name: "assignment", Meaning: "Key of the assignment, `<host>/<deployment target>`. Unset: the report is about all of the cluster."},
		{
			Name: "commit",
			Meaning: "The commit that the cluster has applied. Default for a report about an assignment: the commit of the report about its " +
				"cluster.",
		},
		{Name: "ready", Type: fleet.BoolType, Meaning: "Whether it is ready, in place of `verdict`."},
		{Name: "verdict", Allowed: reportVerdicts, Meaning: "The verdict. Whether a cluster is behind follows from its commit."},
		{Name: "since", Type: fleet.TimeType, Meaning: "The time since when it is so."},
		{Name: "message", Meaning: "The reason, for people."},
	},
}

var statusesTable = &fleet.Table{
	Name:    "commit statuses",
	Meaning: "The commit statuses that are read.",
	Attributes: []fleet.Attribute{
		{
			Name: "context",
			Meaning: "Which cluster a status is of, such as `\"fleet/{cluster}\"`, and with `{host}` about which of its folders, " +
				"`cluster-type` or `cluster`. Unset: `\"flotilla/{cluster}/{host}\"`, or the default contexts of Flux and Argo CD, if they " +
				"have the name of the cluster.",
		},
		{
			Name: "creators",
			Type: fleet.TextOrTextMapType,
			Meaning: "The account of the Git host whose statuses count, as text for all clusters, or a map by cluster; without regard to case. " +
				"The cluster is `unknown` while its newest status is by a different account. Unset: statuses of all accounts count. " +
				forge.CreatorsText(),
		},
		{
			Name:    "commits",
			Type:    fleet.WholeType,
			Default: defaultStatusCommits,
			Least:   1,
			Most:    maxStatusCommits,
			Meaning: "How many commits are read, from the newest back, until every cluster has a status.",
		},
		{Name: "forge", Meaning: "The kind of the Git host: " + forge.Listed("`") + ". Unset: by the Git host's name."},
		{Name: "api_url", Meaning: "The Git host's API, where that does not follow from the URL of the repository."},
	},
}

// WaitTable describes the attribute wait.
var WaitTable = &fleet.Table{
	Name: "wait",
	Meaning: "The attribute `wait` of `flotilla_compliance`: it is read again until so many clusters are ready. Running out of time is " +
		"an error that names the assignments that are not ready.",
	Attributes: []fleet.Attribute{
		{
			Name:    "ready_percent",
			Type:    fleet.WholeType,
			Default: 100,
			Least:   1,
			Most:    100,
			Meaning: "The share of the clusters that has to be ready.",
		},
		{Name: "timeout", Type: fleet.DurationType, Default: "15m", Meaning: "How long to wait at most."},
	},
}
