package git

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
)

func TestLinesOfAHookAreOneSentence(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"error:\nerror: \n":               "",
		"error: \nerror: hook declined\n": "hook declined",
		"remote: error: GH006: Protected branch.\nremote: error: Changes must be made by a pull request.\n": "GH006: Protected branch. Changes must be made by a pull request.",
		"one\r\n\r\ntwo\n":                        "one; two",
		"fatal: '/x' is not a git repository\n\n": "fatal: '/x' is not a git repository",
	} {
		hook := &beginning{limit: maxErrorBody}
		_, _ = hook.Write([]byte(said))
		if got := hook.String(); got != want {
			t.Errorf("%q is %q, want %q", said, got, want)
		}
	}
	long := &beginning{limit: maxErrorBody}
	_, _ = long.Write([]byte(strings.Repeat("x", maxErrorBody)))
	if got := len(long.String()); got > maxBeginning+3 {
		t.Errorf("%d bytes", got)
	}
}

// Administrators publish this key, and ssh-keyscan lists it.
func TestAnUnknownServerIsAskedForItsEd25519Key(t *testing.T) {
	t.Parallel()
	known, err := SSHCredentials{KnownHosts: "# none\n"}.knownHosts(sshAddress{host: "git.example.com", port: "22"})
	if err != nil {
		t.Fatal(err)
	}
	algorithms := known.algorithms()
	if algorithms[0] != ssh.KeyAlgoED25519 || !slices.Contains(algorithms, ssh.KeyAlgoRSASHA256) {
		t.Errorf("the algorithms are %q", algorithms)
	}
}
