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

// fullDisk limits git's files to a few kilobytes. Writes fail with an error, as on a full disk.
const fullDisk = "trap '' XFSZ; ulimit -f 8; exec "

// refusal is a reason of a server to refuse a push.
type refusal struct {
	name    string
	servers []serving
	prepare func(t *testing.T, r *repository)
	texts   []string // the error has one of these
}

func refusals() []refusal {
	own, gitea := reliabilityServers[:3], reliabilityServers[3:]
	return []refusal{
		{"a pre-receive hook", own, func(_ *testing.T, r *repository) {
			installHook(r, "pre-receive", "echo 'GL-HOOK-ERR: branch main is protected' >&2; exit 1")
		}, []string{"branch main is protected"}},
		{"an update hook", own, func(_ *testing.T, r *repository) {
			installHook(r, "update", "echo \"$1 is frozen until Monday\" >&2; exit 1")
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

// TestReliabilityRefusedPushes expects an error with the server's message after a refused push, an unchanged branch, and no second
// attempt.
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
				r.commitFirst("README.md", "x")
				refusal.prepare(t, r)
				tip := r.tip()
				// The content exceeds the disk and the limit even if compressed.
				edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", noise(64<<10))})
				result, err := newClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit)
				hasText := false
				for _, text := range refusal.texts {
					hasText = hasText || err != nil && strings.Contains(err.Error(), text)
				}
				if !errors.Is(err, git.ErrRefused) || !hasText || result.Committed {
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

// noise returns incompressible text.
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
	return overSSHWith(t, directory, fullDisk)
}

func protectBranch(t *testing.T, r *repository) {
	t.Helper()
	server := giteatest.Start(t)
	origin := strings.TrimSuffix(r.origin(), "/gitops.git")
	userinfo, _, _ := strings.Cut(strings.TrimPrefix(origin, "http://"), "@")
	name, password, _ := strings.Cut(userinfo, ":")
	server.API(t, giteatest.User{Name: name, Password: password}, "POST", "/repos/"+name+"/gitops/branch_protections",
		map[string]any{"rule_name": "main", "enable_push": false}, nil)
}
