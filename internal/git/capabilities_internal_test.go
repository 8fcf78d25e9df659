package git

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

const (
	azureOffer = "001e# service=git-upload-pack\n000000de14e0763cbf368bda476046a0fd28be230d67b1bd HEAD\x00 multi_ack thin-pack side-band side-band-64k " +
		"no-progress multi_ack_detailed no-done shallow allow-tip-sha1-in-want filter symref=HEAD:refs/heads/main\n003d14e0763cbf368bda476046a0fd28be230d67b1bd refs/heads/main\n0000"
	commitOffer = "001e# service=git-upload-pack\n00000099de3e3cae168df55f271122dbed0420d5a0595b5b HEAD\x00multi_ack_detailed shallow side-band-64k thin-pack " +
		"allow-tip-sha1-in-want allow-reachable-sha1-in-want\n003fde3e3cae168df55f271122dbed0420d5a0595b5b refs/heads/master\n0000"
)

func TestWhatIsDroppedOfAnAdvertisementIsPutBack(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		azureOffer:       "multi_ack multi_ack_detailed",
		commitOffer:      "multi_ack_detailed",
		azureOffer[:100]: "", // no whole line
		"":               "",
		"<html>":         "",
		"0000":           "",
		strings.Replace(azureOffer, " multi_ack ", " =ulti_ack ", 1): "multi_ack_detailed",
		strings.Replace(commitOffer, "git-", "g\x00t-", 1):           "multi_ack_detailed",
	} {
		said, list := &offer{}, capability.NewList()
		for part := range strings.SplitAfterSeq(text, " ") {
			_, _ = said.Write([]byte(part))
		}
		said.restore(list)
		if got := list.String(); got != want {
			t.Errorf("%.60q: %q is put back, not %q", text, got, want)
		}
	}
}

// What is kept of an advertisement says the same as go-git reads in all of it.
func FuzzOffer(f *testing.F) {
	f.Add([]byte(azureOffer))
	f.Add([]byte(commitOffer))
	f.Add([]byte("001e# service=git-upload-pack\n0000"))
	f.Add([]byte(strings.Replace(commitOffer, "git-", "g\x00t-", 1)))
	f.Add([]byte("0098" + strings.Repeat("0", 40) + " capabilities^{}\x00multi_ack thin-pack\n0000"))
	f.Fuzz(func(t *testing.T, text []byte) {
		said := &offer{}
		_, _ = said.Write(text)
		offered := said.capabilities()
		advertised := packp.NewAdvRefs()
		if advertised.Decode(bytes.NewReader(text)) != nil || advertised.IsEmpty() {
			return
		}
		for _, name := range []capability.Capability{capability.MultiACK, capability.MultiACKDetailed} {
			if offered.Supports(name) != advertised.Capabilities.Supports(name) {
				t.Errorf("%s: %q", name, text)
			}
		}
	})
}

func TestOnlyWhatPassesByItselfIsTriedAgain(t *testing.T) {
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

// What a hook prints may be coloured, or worse: it stands in a diagnostic, which a terminal shows.
func TestWhatAServerSaysOfAPushDoesNothingToATerminal(t *testing.T) {
	t.Parallel()
	report := packp.NewReportStatus()
	report.UnpackStatus = "ok"
	report.CommandStatuses = []*packp.CommandStatus{{ReferenceName: plumbing.NewBranchReferenceName("main"), Status: "hook \x1b]0;declined\x07"}}
	_, err := notApplied(report, report.Error(), "\x1b[31mprotected\x1b[0m\r\nask the owners")
	if err == nil || strings.ContainsAny(err.Error(), "\x1b\x07\r") || !strings.Contains(err.Error(), "protected\ufffd[0m\nask the owners") {
		t.Errorf("the error is %q", err)
	}
}
