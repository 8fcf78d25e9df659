package provider

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
)

// delivery is how commits reach the branch.
type delivery struct {
	pullRequest bool
	forge       forge.Forge
	apiURL      string
	head        string // branch of the pull request; empty: see selectorOf
	title       string
	labels      []string
	reviewers   []string
	merge       string // "none", or a forge.MergeMode
}

var deliveryAttributes = []string{"mode", "forge", "api_url", "branch", "title", "labels", "reviewers", "merge"}

// decodeDelivery reads the attribute delivery, strictly. Unknown values are passed over.
func decodeDelivery(value types.Dynamic, diagnostics *diag.Diagnostics) delivery {
	how := delivery{merge: "none"}
	report := func(format string, arguments ...any) {
		diagnostics.AddAttributeError(path.Root("delivery"), "Invalid delivery", sentence(fmt.Sprintf(format, arguments...)))
	}
	object, ok := plain(value).(map[string]any)
	if !ok {
		if _, unknown := plain(value).(fleet.Unknown); !unknown && plain(value) != nil {
			report("must be an object: {mode = \"push\"} or {mode = \"pull_request\", …}")
		}
		return how
	}
	oneOf := func(key, text string, allowed ...string) string {
		if !slices.Contains(allowed, text) {
			report("attribute %s must be one of %s", key, strings.Join(allowed, ", "))
		}
		return text
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if !slices.Contains(deliveryAttributes, key) {
			report("unknown attribute %q%s", key, fleet.DidYouMean(key, deliveryAttributes))
			continue
		}
		if !fleet.IsKnown(object[key]) || object[key] == nil {
			continue
		}
		if key == "labels" || key == "reviewers" {
			texts, ok := textList(object[key])
			if !ok {
				report("attribute %s must be a list of names", key)
			}
			if key == "labels" {
				how.labels = texts
			} else {
				how.reviewers = texts
			}
			continue
		}
		text, ok := object[key].(string)
		if !ok {
			report("attribute %s must be a string", key)
			continue
		}
		switch key {
		case "mode":
			how.pullRequest = oneOf(key, text, "push", "pull_request") == "pull_request"
		case "forge":
			how.forge = forge.Forge(oneOf(key, text, "gitea", "forgejo", "github", "gitlab"))
		case "merge":
			how.merge = oneOf(key, text, "none", "when_checks_succeed", "now")
		case "branch":
			if err := git.CheckBranch(text); err != nil {
				report("%s", err)
			}
			how.head = text
		case "api_url":
			how.apiURL = text
		case "title":
			how.title = text
		}
	}
	if !how.pullRequest && len(object) > 1 && object["mode"] != nil && fleet.IsKnown(object["mode"]) {
		report("with mode = \"push\" there is nothing else to set")
	}
	return how
}

func textList(value any) (texts []string, ok bool) {
	list, ok := value.([]any)
	for _, element := range list {
		text, isText := element.(string)
		ok = ok && isText
		texts = append(texts, text)
	}
	return texts, ok
}

// selectorOf names the owner's pull request. Its branch tells apart what has one name: the branches
// that it goes into, and the paths there.
func (d delivery) selectorOf(owner gitops.Owner, base string) forge.Selector {
	mark := strings.TrimPrefix(owner.Path+"/"+owner.Name, "/")
	return forge.Selector{Owner: mark, Base: base, Head: cmp.Or(d.head, "flotilla/"+base+"/"+mark)}
}

// deliver applies an edit as the model says, and returns the commit that holds it and the URL of the
// pull request, if there is one.
func (c *connection) deliver(ctx context.Context, how delivery, at place, edit gitops.Edit) (commit, url string, err error) {
	if !how.pullRequest {
		result, err := c.client.Apply(ctx, c.remote(at), edit)
		return result.Commit, "", err
	}
	host, err := c.host(how, at)
	if err != nil {
		return "", "", err
	}
	selector := how.selectorOf(edit.Owner, at.Branch)
	edit.Head = selector.Head
	release, err := c.heads.take(ctx, at.URL+" "+edit.Head)
	if err != nil {
		return "", "", err
	}
	defer release()
	if err := host.Free(ctx, selector); err != nil {
		return "", "", err
	}
	result, err := c.client.Apply(ctx, c.remote(at), edit)
	if err != nil {
		return "", "", err
	}
	if result.HeadCommit == "" {
		return result.Commit, "", closeRequest(ctx, host, selector)
	}
	request, err := propose(ctx, host, how, result.HeadCommit, forge.Wanted{
		Selector: selector, Title: how.titleOf(edit, result), Body: bodyOf(edit, result),
		Labels: how.labels, Reviewers: how.reviewers,
	})
	if err != nil {
		return "", "", fmt.Errorf("%w: branch %q has it: %w", errProposed, edit.Head, err)
	}
	if request.MergeCommit != "" {
		return request.MergeCommit, request.URL, nil
	}
	return result.HeadCommit, request.URL, nil
}

// errProposed: the commit is on the branch of its own, and only its pull request is not as wanted.
var errProposed = errors.New("the commit is pushed, and its pull request is not as it should be")

// propose opens or updates the owner's pull request, and merges it where that is wanted.
func propose(ctx context.Context, host forge.Host, how delivery, head string, wanted forge.Wanted) (*forge.PullRequest, error) {
	request, err := host.Ensure(ctx, wanted)
	if err != nil {
		return nil, err
	}
	if how.merge == "none" {
		return request, host.Hold(ctx, request)
	}
	return host.Merge(ctx, request, head, forge.MergeMode(how.merge))
}

// closeRequest closes the owner's open request: there is nothing to propose any more.
func closeRequest(ctx context.Context, host forge.Host, selector forge.Selector) error {
	request, err := host.Current(ctx, selector)
	if err != nil || request == nil || request.State != forge.Open {
		return err
	}
	return host.Close(ctx, request)
}

func (c *connection) host(how delivery, at place) (forge.Host, error) {
	login := c.credentials.For(at.URL)
	return forge.NewHost(forge.Repository{
		URL: at.URL, APIURL: how.apiURL, Forge: how.forge,
		Credentials: forge.Credentials{
			Username: login.Username, Password: login.Password, Token: login.Token,
		},
	}, forge.WithHTTPTransport(c.over))
}

func (d delivery) titleOf(edit gitops.Edit, result gitops.Result) string {
	switch {
	case d.title != "":
		return d.title
	case edit.Subject != "":
		subject, _, _ := strings.Cut(edit.Subject, "\n")
		return subject
	}
	var parts []string
	for _, kind := range []struct {
		keys []string
		word string
	}{{result.Added, "added"}, {result.Changed, "changed"}, {result.Removed, "removed"}} {
		if len(kind.keys) > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", len(kind.keys), kind.word))
		}
	}
	switch {
	case edit.Keep:
		parts = []string{"folders let go"}
	case len(parts) == 0:
		parts = []string{"hosts put right"}
	}
	return edit.Owner.Name + ": " + strings.Join(parts, ", ")
}

func bodyOf(edit gitops.Edit, result gitops.Result) string {
	if edit.Keep {
		return "The records of this assignment go, and its folders stay.\n"
	}
	return forge.Body(requestChanges(result.Changes))
}

func requestChanges(changes []gitops.FolderChange) []forge.Change {
	rows := make([]forge.Change, len(changes))
	for i, change := range changes {
		rows[i] = forge.Change{
			Host: change.Host, DeploymentTarget: change.DeploymentTarget,
			Action: forge.Action(change.Action), Before: change.Before, After: change.After,
		}
	}
	return rows
}

// pending returns the branch to look at for what is deployed: that of the owner's open pull request,
// which is pending and no drift, or the place's own once it is merged or was closed. An open request that
// is not at the URL in the state, or should have been merged at once, is of an apply that failed half-way.
func (c *connection) pending(ctx context.Context, how delivery, at place, owner gitops.Owner, url string) (branch string, err error) {
	if !how.pullRequest {
		return at.Branch, nil
	}
	host, err := c.host(how, at)
	if err != nil {
		return "", err
	}
	selector := how.selectorOf(owner, at.Branch)
	request, err := host.Current(ctx, selector)
	if err != nil {
		return "", err
	}
	if request != nil && request.State == forge.Open && request.URL == url && how.merge != string(forge.Now) {
		return selector.Head, nil
	}
	return at.Branch, nil
}

// proposedOtherwise tells whether what is deployed is only proposed, by an open request, and the delivery
// has changed: the request must follow, though nothing else changes.
func (r *assignmentResource) proposedOtherwise(
	ctx context.Context, plan, prior *assignmentModel, at place, diagnostics *diag.Diagnostics,
) bool {
	if prior.PullRequest.IsNull() || plan.Delivery.Equal(prior.Delivery) {
		return false
	}
	if r.connection == nil || !r.connection.complete {
		return true // whether it is open cannot be asked yet
	}
	var ignored diag.Diagnostics // what is in the state was checked when it got there
	branch, err := r.connection.pending(
		ctx, decodeDelivery(prior.Delivery, &ignored), at, prior.owner(at), prior.PullRequest.ValueString())
	if err != nil {
		addRepositoryError(ctx, diagnostics, err, false)
		return false
	}
	return branch != at.Branch
}

// closeFormer closes the open request of a delivery that is another one now, or none.
func (r *assignmentResource) closeFormer(ctx context.Context, plan, prior *assignmentModel, at place, diagnostics *diag.Diagnostics) {
	var ignored diag.Diagnostics
	owner, now, then := prior.owner(at), decodeDelivery(plan.Delivery, &ignored), decodeDelivery(prior.Delivery, &ignored)
	selector := then.selectorOf(owner, at.Branch)
	if !then.pullRequest || now.pullRequest && now.selectorOf(owner, at.Branch) == selector {
		return
	}
	host, err := r.connection.host(then, at)
	if err == nil {
		err = closeRequest(ctx, host, selector)
	}
	if err != nil {
		diagnostics.AddAttributeWarning(path.Root("delivery"), "A former pull request may still be open",
			sentence(fmt.Sprintf("everything is delivered as it is now wanted, but the request from branch %q could not be closed: %s", selector.Head, err)))
	}
}

// addForgeError reports what went wrong with a pull request; false where it is about something else.
func addForgeError(diagnostics *diag.Diagnostics, err error) bool {
	at := path.Root("delivery")
	for _, kind := range []struct {
		of      error
		summary string
	}{
		{forge.ErrUnauthorized, "Host refuses the credentials"},
		{forge.ErrRateLimited, "Host limits requests"},
		{forge.ErrNotMergeable, "Pull request cannot be merged"},
		{forge.ErrHeadMoved, "Pull request moved"},
		{forge.ErrNotOwned, "Pull request belongs to somebody else"},
		{forge.ErrReviewer, "Reviewer is not possible"},
		{forge.ErrUnreachable, "Host cannot be reached"},
		{forge.ErrNotFound, "Repository or pull request does not exist"},
		{forge.ErrRefused, "Host refuses the pull request"},
	} {
		if errors.Is(err, kind.of) {
			diagnostics.AddAttributeError(at, kind.summary, sentence(err.Error()))
			return true
		}
	}
	return false
}
