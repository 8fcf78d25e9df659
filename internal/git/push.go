package git

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// PushResult is the outcome of a push.
type PushResult struct {
	// Applied means that the branch is at the commit.
	Applied bool
	// Moved means that another writer was faster.
	Moved bool
	// Sent means that the push may have been applied.
	Sent bool
	// Refused means that the server reported a failure.
	Refused bool
	Took    time.Duration
	// Unanswered means that another attempt may succeed: an ErrRefused, an ErrUnreachable, or nil.
	Unanswered error
}

// MayHaveApplied is true even if the branch moved since.
func (r PushResult) MayHaveApplied() bool { return r.Applied || r.Sent && !r.Refused }

// askTime limits reading a result after the context has ended.
const askTime = 10 * time.Second

// Push moves the branch from old, zero if missing, to commit, as a compare-and-swap. It reads the ref again regardless of the
// answer: an empty 200 may have applied nothing, a dropped connection may have applied the push.
//
// An error means that the push was not applied and cannot succeed. ErrUnknown means that the ref could not be read again; the
// result has the known facts.
func (c *Connector) Push(ctx context.Context, remote Remote, branch string, old, commit Hash, pack *Pack) (PushResult, error) {
	result, err := c.push(ctx, remote, branch, old, commit, pack)
	fields := map[string]any{
		"to": branch, "old": old.String(), "commit": commit.String(), "bytes": pack.Finish(), "took": result.Took,
		"sent": result.Sent, "applied": result.Applied, "moved": result.Moved, "refused": result.Refused,
	}
	if err != nil {
		fields["error"] = err
	} else if result.Unanswered != nil {
		fields["error"] = result.Unanswered
	}
	c.Log(ctx, remote, "pushed", fields)
	return result, err
}

func (c *Connector) push(ctx context.Context, remote Remote, branch string, old, commit Hash, pack *Pack) (PushResult, error) {
	var result PushResult
	w, err := c.dial(remote)
	if err != nil {
		return result, err
	}
	defer w.close()
	said, began := &beginning{limit: maxErrorBody}, time.Now()
	report, pushErr := w.push(ctx, pack, func(advertised *packp.AdvRefs) (*packp.ReferenceUpdateRequest, error) {
		request, err := updateRequest(advertised, branch, old, commit)
		if err == nil {
			request.Progress, result.Sent = said, true
		}
		return request, err
	})
	if result.Sent {
		result.Took = time.Since(began)
	}
	if errors.Is(pushErr, errMoved) {
		result.Moved = true // in time, so not sent
		return result, nil
	}
	if errors.Is(pushErr, errOtherHash) {
		return result, pushErr
	}
	tip, err := readAgain(ctx, w, branch)
	if err != nil && !result.Sent {
		return result, pushErr
	}
	if err != nil {
		if pushErr != nil {
			return result, fmt.Errorf("the push ended with \"%s\", and whether the branch has commit %s %w: %w",
				pushErr.Error(), commit, ErrUnknown, err)
		}
		return result, fmt.Errorf("whether the branch has commit %s %w: %w", commit, ErrUnknown, err)
	}
	result.Refused = report != nil && report.Error() != nil
	switch {
	case tip == commit:
		result.Applied = true
		return result, nil
	case tip != old:
		result.Moved = true
		return result, nil
	case ctx.Err() != nil:
		return result, ctx.Err()
	}
	result.Unanswered, err = notApplied(report, pushErr, said.String())
	return result, err
}

var errMoved = errors.New("the branch was moved by another writer")

// updateRequest sends no pack if the advertisement already differs.
func updateRequest(advertised *packp.AdvRefs, branch string, old, commit Hash) (*packp.ReferenceUpdateRequest, error) {
	name := refName(branch)
	if tip, ok := advertised.References[name.String()]; ok && tip != old {
		return nil, errMoved
	}
	request := packp.NewReferenceUpdateRequest()
	for _, wanted := range []capability.Capability{capability.ReportStatus, capability.Sideband64k} {
		if advertised.Capabilities.Supports(wanted) {
			_ = request.Capabilities.Set(wanted)
		}
	}
	if advertised.Capabilities.Supports(capability.Agent) {
		_ = request.Capabilities.Set(capability.Agent, capability.DefaultAgent())
	}
	request.Commands = []*packp.Command{{Name: name, Old: old, New: commit}}
	return request, nil
}

// readAgain reads the branch even if the context has ended: an unknown commit is worse than a delay.
func readAgain(ctx context.Context, w wire, branch string) (plumbing.Hash, error) {
	outlasting := false
	for try := 1; ; {
		tip, err := readTip(ctx, w, branch)
		if err == nil {
			return tip, nil
		}
		if !outlasting && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)) {
			asking, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTime)
			defer cancel()
			ctx, outlasting = asking, true
			continue
		}
		if try == maxTries || !Transient(err) {
			return Hash{}, err
		}
		// The next attempt sees an ended context.
		_ = waitToTry(ctx, try)
		try++
	}
}

func readTip(ctx context.Context, w wire, branch string) (Hash, error) {
	if ctx.Err() != nil {
		return Hash{}, ctx.Err()
	}
	defer w.close()
	tip, _, err := branchTip(ctx, w, branch)
	return tip, err
}

// notApplied returns unanswered if another attempt may succeed, else an error.
func notApplied(report *packp.ReportStatus, pushErr error, said string) (unanswered, err error) {
	text := "the server gave no reason"
	if pushErr != nil {
		text = pushErr.Error() + refusals(report, pushErr)
	}
	if said != "" {
		text += "; it says: " + said
	}
	text = wording.Visible(text)
	refused := report != nil && report.Error() != nil
	if refused && !isLocked(report) {
		return nil, fmt.Errorf("%w: %s", ErrRefused, text)
	}
	if pushErr != nil && !refused {
		kind := Classify(pushErr)
		switch {
		case kind == nil && errors.As(pushErr, new(*statusError)):
			return nil, fmt.Errorf("%w: %s", ErrRefused, text) // 413 and similar
		case kind != nil && !Transient(pushErr):
			return nil, fmt.Errorf("%w: %s", kind, text)
		}
	}
	if refused || pushErr == nil {
		return fmt.Errorf("%w: the branch did not move: %s", ErrRefused, text), nil
	}
	return fmt.Errorf("%w: the push failed: %s", ErrUnreachable, text), nil
}

// refusals returns reasons that err lacks: Azure Repos reports them with the branch.
func refusals(report *packp.ReportStatus, err error) string {
	if report == nil {
		return ""
	}
	var more strings.Builder
	for _, status := range report.CommandStatuses {
		if status.Status != "ok" && !strings.Contains(err.Error(), status.Status) {
			fmt.Fprintf(&more, "; %s: %s", status.ReferenceName, status.Status)
		}
	}
	return more.String()
}

var azurePattern = regexp.MustCompile(`^(TF|VS)[0-9]+:`)

// isLocked reports whether another push held the lock of the ref, or was faster: Azure Repos has one number for "The reference
// has already been updated by another client". Refs that it calls locked or blocked stay so.
func isLocked(report *packp.ReportStatus) bool {
	for _, status := range report.CommandStatuses {
		if number := azurePattern.FindString(status.Status); number != "" {
			if number == "TF401028:" {
				return true
			}
			continue
		}
		if strings.Contains(status.Status, "lock") || strings.Contains(status.Status, "failed to update ref") {
			return true
		}
	}
	return false
}

// Transient reports whether another attempt may succeed. Plans should not wait for an unreachable server.
func Transient(err error) bool {
	if status, ok := errors.AsType[*statusError](err); ok {
		return status.code >= http.StatusInternalServerError || status.code == http.StatusTooManyRequests
	}
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Op == "dial" {
		return false
	}
	if timeout, ok := errors.AsType[net.Error](err); ok && timeout.Timeout() {
		return false
	}
	return errors.Is(Classify(err), ErrUnreachable)
}
