package git

import (
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

func TestOnlyTransientRefusalsAreRetried(t *testing.T) {
	t.Parallel()
	for status, again := range map[string]bool{
		"failed to update ref": true,
		"cannot lock ref 'refs/heads/main': is at 1 but expected 2":                                                                        true,
		"TF401028: The reference 'refs/heads/main' has already been updated by another client, so you cannot update it. Please try again.": true,
		"TF402455: Pushes to this branch are not permitted; you must use a pull request to update this branch.":                            false,
		"VS403702: The push was blocked because it contains secrets.":                                                                      false,
		"TF401027: You need the Git 'GenericContribute' permission to perform this action.":                                                false,
		"pre-receive hook declined": false,
	} {
		report := packp.NewReportStatus()
		report.UnpackStatus = "ok"
		report.CommandStatuses = []*packp.CommandStatus{{ReferenceName: plumbing.NewBranchReferenceName("main"), Status: status}}
		unanswered, err := notApplied(report, report.Error(), "")
		if (unanswered != nil) != again || (err == nil) != again {
			t.Errorf("%s: %v, %v", status, unanswered, err)
		}
	}
}

// Output of hooks appears in diagnostics on a terminal.
func TestMessagesAboutAPushCannotControlATerminal(t *testing.T) {
	t.Parallel()
	report := packp.NewReportStatus()
	report.UnpackStatus = "ok"
	report.CommandStatuses = []*packp.CommandStatus{
		{ReferenceName: plumbing.NewBranchReferenceName("main"), Status: "hook \x1b]0;declined\x07"},
	}
	_, err := notApplied(report, report.Error(), "\x1b[31mprotected\x1b[0m\r\nask the owners")
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\r") || !strings.Contains(err.Error(), "protected\ufffd[0m\nask the owners") {
		t.Errorf("the error is %q", err)
	}
}
