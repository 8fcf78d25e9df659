//go:build unix

package gitops_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// fullDisk makes git's files end after a few kilobytes, as on a full disk: a
// write fails, and says so.
const fullDisk = "trap '' XFSZ; ulimit -f 8; exec "

// refusal is a reason for which a server refuses a push.
type refusal struct {
	name    string
	servers []serving
	prepare func(t *testing.T, r *repository)
	says    []string // one of these is in the error
}

func refusals() []refusal {
	own, gitea := reliabilityServers[:3], reliabilityServers[3:]
	return []refusal{
		{"a pre-receive hook", own, func(_ *testing.T, r *repository) {
			hook(r, "pre-receive", "echo 'GL-HOOK-ERR: branch main is protected' >&2; exit 1")
		}, []string{"branch main is protected"}},
		{"an update hook", own, func(_ *testing.T, r *repository) {
			hook(r, "update", "echo \"$1 is frozen until Monday\" >&2; exit 1")
		}, []string{"refs/heads/main is frozen until Monday"}},
		{"a limit on what is received", own, func(_ *testing.T, r *repository) {
			r.git("config", "receive.maxInputSize", "1000")
		}, []string{"exceeds"}},
		{"a full disk", []serving{
			{name: "git http-backend", config: anyObject, remote: overFullHTTP},
			{name: "git over ssh", remote: overFullSSH},
		}, func(*testing.T, *repository) {}, []string{"File too large", "unpack", "unable to write"}},
		{"a protected branch", gitea, func(t *testing.T, r *repository) {
			protectBranch(t, r)
		}, []string{"protected"}},
	}
}

// TestReliabilityRefusedPushes holds that a refused push is an error with the
// server's words, that nothing has changed, and that nothing is tried a second
// time.
func TestReliabilityRefusedPushes(t *testing.T) {
	t.Parallel()
	for i, refusal := range refusals() {
		for j, serving := range refusal.servers {
			if !acceptancetest.All() && j != i%len(refusal.servers) {
				continue // each reason on one server, and each server with a reason
			}
			if serving.mirror && testing.Short() {
				continue
			}
			t.Run(refusal.name+", "+serving.name, func(t *testing.T) {
				t.Parallel()
				r := newRepository(t, serving)
				r.begin("README.md", "x")
				refusal.prepare(t, r)
				tip := r.tip()
				// More than the disk and the limit take, and nothing that shrinks.
				edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", noise(64<<10))})
				result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
				said := false
				for _, text := range refusal.says {
					said = said || err != nil && strings.Contains(err.Error(), text)
				}
				if !errors.Is(err, git.ErrRefused) || !said || result.Committed {
					t.Errorf("result = %+v, err = %v", result, err)
				}
				if now, files := r.tip(), r.files(); now != tip || len(files) != 1 {
					t.Errorf("the branch changed: %s, %d files", now, len(files))
				}
				r.fsck()
				t.Logf("%v", err)
				reliabilitytest.Report(t, fmt.Sprintf("40-refused-%d-%d", i, j),
					"a push refused by "+refusal.name, serving.name, "1", "an error with the server's words, nothing changed")
			})
		}
	}
}

// noise is text that does not compress.
func noise(n int) string {
	text, state := make([]byte, n), uint32(1)
	for i := range text {
		state = state*1664525 + 1013904223
		text[i] = byte(state >> 24)
	}
	return string(text)
}

func overFullHTTP(t testing.TB, directory string) git.Remote {
	t.Helper()
	program := httpBackend(t, filepath.Dir(directory))
	program.Path, program.Args = "/bin/sh", []string{"-c", fullDisk + program.Path}
	return git.Remote{IsGitOps: true, URL: serve(t, program) + "/" + filepath.Base(directory)}
}

func overFullSSH(t testing.TB, directory string) git.Remote {
	t.Helper()
	return sshRunning(t, directory, fullDisk)
}

// protectBranch forbids everybody to push to main.
func protectBranch(t *testing.T, r *repository) {
	t.Helper()
	server := giteatest.Start(t)
	origin := strings.TrimSuffix(r.origin(), "/gitops.git")
	userinfo, _, _ := strings.Cut(strings.TrimPrefix(origin, "http://"), "@")
	name, password, _ := strings.Cut(userinfo, ":")
	server.API(t, giteatest.User{Name: name, Password: password}, "POST", "/repos/"+name+"/gitops/branch_protections",
		map[string]any{"rule_name": "main", "enable_push": false}, nil)
}
