package rollout

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What `rolling_out` says at its end.
const (
	saidWentBack     = ", failed and was rolled back"
	saidStuckAndBack = ", was stuck and was rolled back"
	saidFailed       = ", failed"
	saidStuck        = ", stuck"
	saidWaits        = ", waits for "
)

var (
	saidStage = regexp.MustCompile(`^stage (\d+) of (\d+)`)
	saidHosts = regexp.MustCompile(`^(\d+) of (\d+) hosts?`)
	saidSince = regexp.MustCompile(`^, since (\S+Z)`)
)

// ParseProgress reads what [Progress.String] has written of a deployment target:
// all but what that leaves out, which is how many folders wait, and the approval that has failed content tried again.
func ParseProgress(target, text string) (Progress, error) {
	p := Progress{DeploymentTarget: target}
	if err := p.parse(text); err != nil {
		return Progress{}, fmt.Errorf("%q is not what rolling_out says of a deployment target: %w", text, err)
	}
	return p, nil
}

func (p *Progress) parse(text string) error {
	if found := saidStage.FindStringSubmatch(text); found != nil {
		text = text[len(found[0]):]
		var err error
		if p.Stage, p.Of, err = twoNumbers(found); err != nil {
			return err
		}
		if p.Stage < 1 || p.Stage > p.Of {
			return errors.New("there is no such stage")
		}
		if quoted, ok := strings.CutPrefix(text, " "); ok {
			prefix, err := strconv.QuotedPrefix(quoted)
			if err != nil || prefix[0] != '"' {
				return errors.New("the name of the stage is not quoted")
			}
			p.Name, _ = strconv.Unquote(prefix)
			text = quoted[len(prefix):]
		}
		rest, ok := strings.CutPrefix(text, ", ")
		if !ok {
			return errors.New("it does not say how many hosts are done")
		}
		text = rest
	}
	found := saidHosts.FindStringSubmatch(text)
	if found == nil {
		return errors.New("it does not say how many hosts are done")
	}
	var err error
	if p.Done, p.Hosts, err = twoNumbers(found); err != nil {
		return err
	}
	text = text[len(found[0]):]
	if since := saidSince.FindStringSubmatch(text); since != nil {
		if p.Since, err = time.Parse(time.RFC3339, since[1]); err != nil {
			return errors.New("the time is none")
		}
		text = text[len(since[0]):]
	}
	return p.parseEnd(text)
}

// parseEnd reads what is waited for, and the content.
func (p *Progress) parseEnd(text string) error {
	if before, content, ok := strings.Cut(text, " ("+p.DeploymentTarget+"@"); ok {
		if content, ok = strings.CutSuffix(content, ")"); !ok || content == "" {
			return errors.New("the content does not end")
		}
		p.Content, text = content, before
	}
	switch text {
	case saidWentBack:
		p.Failed, p.WentBack, p.WaitsFor = true, true, waitsForFix
	case saidStuckAndBack:
		p.Failed, p.Stuck, p.WentBack, p.WaitsFor = true, true, true, waitsForProgress
	case saidFailed:
		p.Failed, p.WaitsFor = true, waitsForFix
	case saidStuck:
		p.Failed, p.Stuck, p.WaitsFor = true, true, waitsForProgress
	default:
		waits, ok := strings.CutPrefix(text, saidWaits)
		if !ok || !slices.Contains(whatIsWaitedFor(), waits) {
			return errors.New("it does not say what is waited for")
		}
		p.WaitsFor = waits
	}
	return nil
}

func twoNumbers(found []string) (first, second int, err error) {
	if first, err = strconv.Atoi(found[1]); err == nil {
		second, err = strconv.Atoi(found[2])
	}
	if err != nil {
		return 0, 0, errors.New("a number is too large")
	}
	return first, second, nil
}

// whatIsWaitedFor is all that a folder can wait for, what has to be done first before all others.
func whatIsWaitedFor() []string {
	return []string{
		waitsForFix, waitsForProgress, waitsForApproval, waitsForRequired, waitsForRequest, waitsForWindow, waitsForReady, waitsForTime, waitsForStage, waitsForHold,
	}
}
