//go:build unix

package gitops_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

func serveInProcess(b testing.TB, r *repository) git.Remote {
	b.Helper()
	input, output := processtest.Piped(b, newProcess(b, "serve"))
	if _, err := fmt.Fprintf(input, "%q\n", filepath.Dir(r.directory)); err != nil {
		b.Fatal(err)
	}
	line, err := output.ReadString('\n')
	if err != nil {
		b.Fatal(err)
	}
	return git.Remote{IsGitOps: true, URL: strings.TrimSpace(line) + "/" + filepath.Base(r.directory), Branch: "main"}
}

func processorTime(b *testing.B) time.Duration {
	b.Helper()
	spent, err := readProcessorTime()
	if err != nil {
		b.Fatal(err)
	}
	return spent
}

// bigEdit returns an edit with 40 folders of 5 files for each host. 500 hosts have 100,000 files.
func bigEdit(b testing.TB, hosts int) gitops.Edit {
	b.Helper()
	edit := gitops.Edit{Owner: dev, Hosts: gitops.FolderEdits{}}
	for h := range hosts {
		folders := map[string]gitops.FolderEdit{}
		for t := range 40 {
			folders[fmt.Sprintf("workload-%02d-main", t)] = bigFolder(b, h, t, 0)
		}
		edit.Hosts[fmt.Sprintf("type-%03d", h)] = folders
	}
	return edit
}

// bigFolder renders its files lazily, as the provider does.
func bigFolder(b testing.TB, host, target, version int) gitops.FolderEdit {
	b.Helper()
	render := func() gitops.FolderEdit {
		text := fmt.Sprintf("%d %d %d\n", host, target, version)
		return newFolder(
			b,
			"namespace.yaml",
			"kind: Namespace\n"+text,
			"platform-config.yaml",
			strings.Repeat("VALUE: "+text, 20),
			"policy.yaml",
			"kind: RoleBinding\n"+text,
			"quota.yaml",
			"kind: ResourceQuota\n"+text,
			"reconciler.yaml",
			strings.Repeat("kind: Kustomization\n", 20)+text,
		)
	}
	folder := render()
	folder.Files = func() ([]git.File, error) { return render().Files() }
	return folder
}

// BenchmarkOneFolderAmong100000Files changes one folder over HTTP, by Apply and by the fast path of the git binary: a partial,
// shallow, bare clone, fast-import and push. "client-ms" is the processor time of the client alone.
func BenchmarkOneFolderAmong100000Files(b *testing.B) {
	r := newRepository(b, serving{name: "http", config: anyObject, remote: overHTTP})
	edit := bigEdit(b, 500)
	start := time.Now()
	if result, err := gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), git.Remote{IsGitOps: true, URL: r.directory, Branch: "main"}, edit); err != nil ||
		len(changedKeys(result, "added")) != 20000 {
		b.Fatalf("%+v, %v", result.Commit, err)
	}
	b.Logf("first apply of 20,000 folders to a path: %s", time.Since(start).Round(time.Millisecond))
	r.git("repack", "-adq")
	remote := serveInProcess(b, r)
	version := 0

	first, err := gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), remote, edit)
	if err != nil {
		b.Fatal(err)
	}
	edit.Written, edit.Records = treesOf(edit), first.Records // as in the state
	for _, hasRecords := range []bool{true, false} {
		b.Run(map[bool]string{true: "apply", false: "apply-without-records"}[hasRecords], func(b *testing.B) {
			b.ReportAllocs()
			var spent time.Duration
			for b.Loop() {
				version++
				host := edit.Hosts["type-250"]
				host["workload-20-main"] = bigFolder(b, 250, 20, version)
				request := edit
				if !hasRecords {
					request.Records = nil
				}
				before := processorTime(b)
				result, err := gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), remote, request)
				spent += processorTime(b) - before
				if err != nil || len(changedKeys(result, "changed")) != 1 {
					b.Fatalf("%+v, %v", result, err)
				}
				edit.Written, edit.Records = treesOf(edit), result.Records
			}
			b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "client-ms/op")
		})
	}
	b.Run("inspect", func(b *testing.B) {
		b.ReportAllocs()
		want := treesOf(edit)
		var spent time.Duration
		for b.Loop() {
			before := processorTime(b)
			view, err := readOwnerWith(context.Background(), gitops.NewBranchClient(gitops.BranchOptions{}), remote, dev)
			if err != nil || len(readTrees(b, view, want)) != 500 {
				b.Fatal(err)
			}
			spent += processorTime(b) - before
		}
		b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "client-ms/op")
	})
	b.Run("git", func(b *testing.B) {
		var spent time.Duration
		for b.Loop() {
			version++
			spent += changeByGit(b, remote.URL, 250, 21, version)
		}
		b.ReportMetric(float64(spent.Milliseconds())/float64(b.N), "client-ms/op")
	})
}

// changeByGit changes a folder by the fast path of the git binary and returns its processor time.
func changeByGit(b testing.TB, address string, host, target, version int) (spent time.Duration) {
	b.Helper()
	git := func(stdin, directory string, args ...string) {
		command := exec.CommandContext(b.Context(), "git", args...)
		command.Dir, command.Stdin = directory, strings.NewReader(stdin)
		if output, err := command.CombinedOutput(); err != nil {
			b.Fatalf("git %v: %v: %s", args, err, output)
		}
		spent += command.ProcessState.UserTime() + command.ProcessState.SystemTime()
	}
	clone := filepath.Join(b.TempDir(), "clone.git")
	git("", "", "clone", "--quiet", "--bare", "--depth=1", "--filter=blob:none", "--branch=main", address, clone)
	var stream strings.Builder
	fmt.Fprintf(
		&stream,
		"commit refs/heads/main\ncommitter A <a@example.com> %d +0000\ndata 1\nx\nfrom refs/heads/main^0\n",
		time.Now().Unix(),
	)
	files, _ := bigFolder(b, host, target, version).Files()
	for _, file := range files {
		fmt.Fprintf(
			&stream,
			"M 100644 inline dev/type-%03d/workload-%02d-main/%s\ndata %d\n%s\n",
			host,
			target,
			file.Name,
			len(file.Content),
			file.Content,
		)
	}
	git(stream.String(), clone, "fast-import", "--quiet")
	git("", clone, "push", "--quiet", "origin", "main:main")
	return spent
}
