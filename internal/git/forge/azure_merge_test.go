package forge_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

func TestAzureMergeNow(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	get := func(changes ...fields) exchange { return exchange{request: azGet, answer: azPull(changes...)} }
	ask := `{"status": "completed", "lastMergeSourceCommit": {"commitId": "` + newHead + `"}}`
	done := exchange{request: azPatch, body: ask, answer: azPull(azStatus(azQueued))}
	refused := func(status int, kind, message string) exchange {
		return exchange{request: azPatch, body: ask, status: status, answer: azRefusal(kind, message)}
	}
	for name, test := range map[string]struct {
		exchanges []exchange
		kind      error
		wantText  string
	}{
		"slow merge": {[]exchange{get(), done, get(azStatus(azQueued)), get(), get(azMerged), get(azMerged)}, nil, ""},
		"still checking": {[]exchange{
			get(azStatus(azQueued)), refused(409, "GitPullRequestStaleException", "TF401192: The source branch has been modified since the last merge attempt."),
			get(azStatus(azQueued)), done, get(azMerged), get(azMerged),
		}, nil, ""},
		"conflicts": {
			[]exchange{get(azStatus(azConflict)), done, get(azStatus(azConflict), fields{"mergeFailureMessage": "in a file"}), get(azStatus(azConflict))},
			forge.ErrNotMergeable, `pull request #7 cannot be merged (its status is "conflicts"): Azure Repos does not merge it: conflicts: in a file`,
		},
		"policy found late": {
			[]exchange{get(), done, get(azStatus(azQueued)), get(azStatus("rejectedByPolicy")), get(azStatus("rejectedByPolicy"))},
			forge.ErrNotMergeable, "Azure Repos does not merge it: rejectedByPolicy",
		},
		"missing approvals": {
			[]exchange{get(), refused(403, "GitPullRequestUpdateRejectedByPolicyException", "The pull request cannot be completed, because policies are not fulfilled: minimum number of reviewers"), get()},
			forge.ErrNotMergeable, "minimum number of reviewers",
		},
		"a draft": {
			[]exchange{get(fields{"isDraft": true}), refused(400, "InvalidArgumentValueException", "TF401403: A draft pull request cannot be completed."), get(fields{"isDraft": true})},
			forge.ErrRefused, `(its status is "draft")`,
		},
		"closed meanwhile": {[]exchange{get(), done, get(azClosed), get(azClosed)}, forge.ErrNotMergeable, "was closed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantMerged(t, newAzure(t, test.exchanges), request, forge.Now, test.kind, test.wantText)
		})
	}
}

func TestAzureMergeWhenChecksSucceed(t *testing.T) {
	t.Parallel()
	request := &forge.PullRequest{Number: 7, Owner: "dev", Head: "flotilla/dev"}
	get := func(changes ...fields) exchange { return exchange{request: azGet, answer: azPull(changes...)} }
	self := exchange{request: azSelf, answer: fields{"authenticatedUser": fields{"id": azMe, "providerDisplayName": "Bot"}, "instanceId": "x"}}
	set := func(id string) exchange {
		return exchange{request: azPatch, body: `{"autoCompleteSetBy": {"id": "` + id + `"}}`, answer: azPull()}
	}
	for name, test := range map[string]struct {
		exchanges []exchange
		state     forge.RequestState
		kind      error
		wantText  string
	}{
		"turned on":           {[]exchange{get(), self, set(azMe), get(azAutoMerge)}, forge.Open, nil, ""},
		"already turned on":   {[]exchange{get(azAutoMerge), get(azAutoMerge)}, forge.Open, nil, ""},
		"nothing to wait for": {[]exchange{get(), self, set(azMe), get(azMerged)}, forge.Merged, nil, ""},
		"the head moved meanwhile": {
			[]exchange{get(), self, set(azMe), get(azAutoMerge, azOldHead), set(azNobody)}, "", forge.ErrHeadMoved,
			"auto-merge was turned on, the head moved meanwhile, and auto-merge was turned off again",
		},
		"the head moved, and auto-merge stays on": {
			[]exchange{get(), self, set(azMe), get(azAutoMerge, azOldHead), func() exchange { e := set(azNobody); e.status, e.answer = 500, "oh no"; return e }()}, "", forge.ErrHeadMoved,
			"auto-merge cannot be turned off",
		},
		"not allowed": {[]exchange{get(), self, func() exchange {
			e := set(azMe)
			e.status, e.answer = 403, azRefusal("GitNeedsPermissionException", "TF401027: You need the Git 'PullRequestContribute' permission")
			return e
		}(), get()}, "", forge.ErrUnauthorized, "PullRequestContribute"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantAutoMerge(t, newAzure(t, test.exchanges), request, test.state, test.kind, test.wantText)
		})
	}

	t.Run("turned off", func(t *testing.T) {
		t.Parallel()
		failed := set(azNobody)
		failed.status, failed.answer = 500, "oh no"
		host := newAzure(t, []exchange{
			get(azAutoMerge), set(azNobody),
			get(), get(fields{"autoCompleteSetBy": fields{"id": azNobody}}),
			get(azAutoMerge), failed, get(),
			get(azAutoMerge), failed, get(azAutoMerge),
		})
		for range 4 {
			if err := host.DisableAutoMerge(t.Context(), request); err != nil {
				t.Error(err)
			}
		}
		wantError(t, host.DisableAutoMerge(t.Context(), request), forge.ErrUnreachable, "cannot be turned off")
	})
}
