package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// push sends the pack and finds out what came of it. Whatever a server or a
// proxy answers, only the ref tells: an empty 200 is no error and has applied
// nothing, a dropped connection is an error and may have applied. The branch goes
// from old to commit; base is what the changes were worked out at.
func (a *application) push(
	ctx context.Context, base, old, commit plumbing.Hash, pack []byte, changes []*change,
) (done bool, err error) {
	if err := a.listen(ctx); err != nil {
		return false, err
	}
	w, err := a.client.dial(a.remote)
	if err != nil {
		return false, err
	}
	defer w.close()
	said, sent, began := &tail{limit: maxErrorBody}, false, time.Now()
	report, pushErr := w.push(ctx, func(advertised *packp.AdvRefs) (*packp.ReferenceUpdateRequest, error) {
		request, err := updateRequest(advertised, a.target(), old, commit, pack)
		if err == nil {
			request.Progress, sent = said, true
			for _, c := range changes {
				c.by.pushes++
			}
		}
		return request, err
	})
	if sent {
		a.race.pushed = time.Since(began)
	}
	if errors.Is(pushErr, errMoved) {
		return false, a.overtaken(false) // seen in time: nothing was sent
	}
	if errors.Is(pushErr, errOtherHash) {
		return false, pushErr
	}
	tip, err := a.readAgain(ctx, w)
	if err != nil && !sent {
		return false, pushErr
	}
	if err != nil {
		unsettle(changes)
		if pushErr != nil {
			return false, fmt.Errorf("the push ended with \"%s\", and whether the branch has commit %s %w: %w",
				pushErr.Error(), commit, errUnknown, err)
		}
		return false, fmt.Errorf("whether the branch has commit %s %w: %w", commit, errUnknown, err)
	}
	refused := report != nil && report.Error() != nil
	if sent && !refused {
		unsettle(changes)
	}
	switch {
	case tip == commit:
		unsettle(changes)
		if a.head() != "" {
			a.settle(base, tip, changes)
		} else {
			a.settle(tip, plumbing.ZeroHash, nil)
		}
		return true, nil
	case tip != old:
		return false, a.overtaken(sent)
	case ctx.Err() != nil:
		return false, ctx.Err()
	}
	return false, a.notApplied(report, pushErr, said.String())
}

// unsettle notes that the changes may have been applied.
func unsettle(changes []*change) {
	for _, c := range changes {
		c.by.unsettled = c
	}
}

// updateRequest asks for the branch to go from old to commit. The server
// compares once more; what it already says now saves sending the pack.
func updateRequest(
	advertised *packp.AdvRefs, branch string, old, commit plumbing.Hash, pack []byte,
) (*packp.ReferenceUpdateRequest, error) {
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
	request.Packfile = io.NopCloser(bytes.NewReader(pack))
	return request, nil
}

// readAgain reads where the branch is after a push. It tries for a while, even
// when the context has ended, because a commit that nobody knows of is worse.
func (a *application) readAgain(ctx context.Context, w wire) (plumbing.Hash, error) {
	for try := 1; ; try++ {
		tip, err := a.readTip(ctx, w)
		if err == nil || try == maxUnanswered || !passing(err) {
			return tip, err
		}
		if err := a.client.sleep(context.WithoutCancel(ctx), a.client.jitter(firstWait<<try)); err != nil {
			return plumbing.ZeroHash, err
		}
	}
}

func (a *application) readTip(ctx context.Context, w wire) (plumbing.Hash, error) {
	if ctx.Err() != nil {
		settling, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
		defer cancel()
		ctx = settling
	}
	defer w.close()
	tip, _, err := branchTip(ctx, w, a.target())
	return tip, err
}

// notApplied judges a push that left the branch where it was: nil means to try
// again.
func (a *application) notApplied(report *packp.ReportStatus, pushErr error, said string) error {
	text := "the server gave no reason"
	if pushErr != nil {
		text = pushErr.Error()
	}
	if said != "" {
		text += "; it says: " + said
	}
	refused := report != nil && report.Error() != nil
	if refused && !isLocked(report) {
		return fmt.Errorf("%w: %s", ErrRefused, text)
	}
	if pushErr != nil && !refused {
		kind := classify(pushErr)
		var status *statusError
		switch {
		case kind == nil && errors.As(pushErr, &status):
			return fmt.Errorf("%w: %s", ErrRefused, text) // 413 and its like
		case kind != nil && !passing(pushErr):
			return fmt.Errorf("%w: %s", kind, text)
		}
	}
	if a.race.unanswered++; a.race.unanswered < maxUnanswered {
		return nil
	}
	if refused || pushErr == nil {
		return fmt.Errorf("%w: the branch did not move, %d times: %s", ErrRefused, a.race.unanswered, text)
	}
	return fmt.Errorf("%w: the push did not get through, %d times: %s", ErrUnreachable, a.race.unanswered, text)
}

// isLocked reports whether a ref could not be updated because another push held
// its lock at that moment.
func isLocked(report *packp.ReportStatus) bool {
	for _, status := range report.CommandStatuses {
		if strings.Contains(status.Status, "lock") || strings.Contains(status.Status, "failed to update ref") {
			return true
		}
	}
	return false
}

// passing reports whether a request may well succeed when it is made again: a
// dropped connection, a server that is busy or broken for the moment. Not
// reaching the host at all is not, since a plan should not wait for that.
func passing(err error) bool {
	var status *statusError
	if errors.As(err, &status) {
		return status.code >= http.StatusInternalServerError || status.code == http.StatusTooManyRequests
	}
	var dial *net.OpError
	if errors.As(err, &dial) && dial.Op == "dial" {
		return false
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return false
	}
	return errors.Is(classify(err), ErrUnreachable)
}
