package compliance_test

import (
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func newStatus(cluster string, state forge.StatusState, message string) forge.Status {
	return forge.Status{Context: "flotilla/" + cluster, State: state, Description: message, Time: questionTime.Add(-time.Minute)}
}

func TestCommitStatusesAreReadUntilEveryClusterHasOne(t *testing.T) {
	t.Parallel()
	contexts, err := observe.ParseContext("flotilla/{cluster}")
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{tip: newer, commits: map[string]string{newer: treeB, ready: treeA}, statuses: []delivery.CommitStatuses{
		{Commit: newer, Statuses: []forge.Status{
			newStatus("flux-1", forge.Success, ""), newStatus("flux-2", forge.Failure, "no space"), newStatus("flux-3", forge.Pending, "wait"),
			{Context: "ci/test", State: forge.Failure}, newStatus("stranger", forge.Success, ""),
		}},
		{Commit: ready, Statuses: []forge.Status{
			newStatus("flux-1", forge.Failure, "old"), newStatus("flux-2", forge.Success, ""), newStatus("flux-4", forge.Success, ""),
		}},
	}}
	q := newQuestion(map[string]string{"flux-1": "flux", "flux-2": "flux", "flux-3": "flux", "flux-4": "flux", "flux-5": "flux"})
	q.Feedback.Statuses = &compliance.Statuses{Contexts: contexts, Limit: 10}
	want := map[string]expectation{
		"flux-1": {verdict.Ready, ""},
		"flux-2": {verdict.Failed, "commit 2222222 cannot be applied: no space"},
		"flux-3": {verdict.Behind, "commit 2222222 is being applied: wait"},
		"flux-4": {verdict.Behind, "has commit 07fb322"},
		"flux-5": {verdict.Unknown, "there is no report about this cluster"},
	}
	answer := mustEvaluate(t, r, q)
	checkVerdicts(t, answer, want)
	if answer.Statuses != nil {
		t.Error(answer.Statuses)
	}
	// Statuses read before the error of the Git host count.
	r.statusesErr = errors.New("the Git host answers no more")
	answer = mustEvaluate(t, r, q)
	checkVerdicts(t, answer, want)
	if answer.Statuses == nil {
		t.Error("the answer has no error of the Git host")
	}
	q.Feedback.Statuses.Limit = 1
	want["flux-4"] = want["flux-5"]
	checkVerdicts(t, mustEvaluate(t, r, q), want)
}

// A token with the right to set statuses can set them for every cluster. The attribute creators names the accounts whose statuses count.
func TestStatusesOfOtherAccountsDoNotCount(t *testing.T) {
	t.Parallel()
	contexts, err := observe.ParseContext("flotilla/{cluster}/{host}")
	if err != nil {
		t.Fatal(err)
	}
	by := func(creator, subject string, state forge.StatusState) forge.Status {
		return forge.Status{Context: "flotilla/" + subject, State: state, Time: questionTime.Add(-time.Minute), Creator: creator}
	}
	bots := compliance.Creators{ByCluster: map[string]string{"flux-1": "bot-1", "flux-2": "bot-2", "flux-3": "bot-3"}}
	one := compliance.Creators{All: "bot-1"}
	foreign := func(subject, by string) expectation {
		return expectation{verdict.Unknown, `status "flotilla/` + subject + `" of commit 2222222 is by ` + by}
	}
	good := func(cluster, creator string) []forge.Status {
		return []forge.Status{by(creator, cluster+"/cluster", forge.Success), by(creator, cluster+"/cluster-type", forge.Success)}
	}
	for name, test := range map[string]struct {
		creators compliance.Creators
		newest   []forge.Status
		older    []forge.Status
		cluster  string
		want     expectation
	}{
		"no creators":                                 {compliance.Creators{}, good("flux-1", "mallory"), nil, "flux-1", expectation{verdict.Ready, ""}},
		"its own account":                             {bots, good("flux-2", "bot-2"), nil, "flux-2", expectation{verdict.Ready, ""}},
		"its own account in upper case":               {bots, good("flux-2", "BOT-2"), nil, "flux-2", expectation{verdict.Ready, ""}},
		"a similar letter":                            {compliance.Creators{All: "k"}, good("flux-1", "\u212a"), nil, "flux-1", foreign("flux-1/cluster", "\"\u212a\", and only those by \"k\" count")},
		"the account of another cluster":              {bots, good("flux-2", "bot-1"), nil, "flux-2", foreign("flux-2/cluster", `"bot-1", and only those by "bot-2" count for this cluster`)},
		"a failure by another account":                {bots, []forge.Status{by("bot-1", "flux-2/cluster-type", forge.Failure)}, nil, "flux-2", foreign("flux-2/cluster-type", `"bot-1"`)},
		"a deleted account":                           {bots, good("flux-2", ""), nil, "flux-2", foreign("flux-2/cluster", `an unknown account, and only those by "bot-2"`)},
		"no account for the cluster":                  {bots, good("flux-4", "bot-1"), nil, "flux-4", foreign("flux-4/cluster", `"bot-1", and creators has no account for this cluster`)},
		"one account for all":                         {one, good("flux-2", "bot-1"), nil, "flux-2", expectation{verdict.Ready, ""}},
		"one account for all, and another":            {one, good("flux-2", "bot-2"), nil, "flux-2", foreign("flux-2/cluster", `"bot-2"`)},
		"an older status by another account":          {bots, good("flux-2", "bot-2"), good("flux-2", "bot-1"), "flux-2", expectation{verdict.Ready, ""}},
		"an older status by its own account":          {bots, good("flux-2", "bot-1"), good("flux-2", "bot-2"), "flux-2", foreign("flux-2/cluster", `"bot-1"`)},
		"a foreign status of another context":         {bots, append(good("flux-2", "bot-2"), by("bot-1", "flux-2/cluster-type/x", forge.Success)), nil, "flux-2", expectation{verdict.Ready, ""}},
		"a foreign status of the cluster's folder":    {bots, append(good("flux-2", "bot-2")[1:], by("bot-1", "flux-2/cluster", forge.Failure)), nil, "flux-2", expectation{verdict.Ready, ""}},
		"a status of another cluster by this account": {bots, append(good("flux-2", "bot-2"), by("bot-2", "flux-1/cluster-type", forge.Failure)), nil, "flux-2", expectation{verdict.Ready, ""}},
	} {
		r := &repository{tip: newer, commits: map[string]string{newer: treeB, ready: treeA}, statuses: []delivery.CommitStatuses{
			{Commit: newer, Statuses: test.newest}, {Commit: ready, Statuses: test.older},
		}}
		q := newQuestion(map[string]string{test.cluster: "flux"})
		q.Feedback.Statuses = &compliance.Statuses{Contexts: contexts, Limit: 10, Creators: test.creators}
		t.Run(name, func(t *testing.T) {
			checkVerdicts(t, mustEvaluate(t, r, q), map[string]expectation{test.cluster: test.want})
		})
		if r.creatorsQueried != test.creators.IsSet() {
			t.Errorf("%s: got creatorsQueried %v, want %v", name, r.creatorsQueried, test.creators.IsSet())
		}
	}
}

// For Bitbucket, Flux uses a hash of the context as the key, and the same name for all clusters.
func TestCommitStatusesAreFoundByTheKeyOfTheirContext(t *testing.T) {
	t.Parallel()
	keyed := func(context string, state forge.StatusState, message string) forge.Status {
		hash := sha1.Sum([]byte(context))
		return forge.Status{
			Context: "kustomization/flotilla-cluster", Key: hex.EncodeToString(hash[:]), State: state, Description: message, Time: questionTime.Add(-time.Minute),
		}
	}
	r := &repository{
		tip:     newer,
		commits: map[string]string{newer: treeB},
		statuses: []delivery.CommitStatuses{{Commit: newer, Statuses: []forge.Status{
			keyed("flotilla/flux-1/cluster", forge.Success, ""), keyed("flotilla/flux-1/cluster-type", forge.Success, ""),
			keyed("flotilla/flux-2/cluster", forge.Success, ""), keyed("flotilla/flux-2/cluster-type", forge.Failure, "no space"),
			keyed("flotilla/stranger/cluster", forge.Failure, ""), keyed("ci/flux-5", forge.Failure, ""),
			{Context: "flotilla/flux-3", Key: "BUILD-1", State: forge.Failure, Description: "by name", Time: questionTime.Add(-time.Minute)},
		}}},
	}
	q := newQuestion(map[string]string{"flux-1": "flux", "flux-2": "flux", "flux-3": "flux", "flux-5": "flux"})
	q.Feedback.Statuses = &compliance.Statuses{Contexts: observe.DefaultContexts("dev"), Limit: 10}
	checkVerdicts(t, mustEvaluate(t, r, q), map[string]expectation{
		"flux-1": {verdict.Ready, ""},
		"flux-2": {verdict.Failed, "commit 2222222 cannot be applied: no space"},
		"flux-3": {verdict.Failed, "commit 2222222 cannot be applied: by name"},
		"flux-5": {verdict.Unknown, "there is no report about this cluster"},
	})
}
