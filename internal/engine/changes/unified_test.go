package changes_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func TestUnifiedShowsLinesLikeGit(t *testing.T) {
	t.Parallel()
	got := changes.Unified([]changes.FolderChange{{
		Key:    folder.Key{Host: "large", DeploymentTarget: "hello-live"},
		Before: oneFile("platform-config.yaml", "data:\n  A: one\n  B: two\n"), After: oneFile("platform-config.yaml", "data:\n  A: one\n  B: three\n"),
	}, {
		Key: folder.Key{Host: "clusters/a", DeploymentTarget: "hello-edge"}, Added: true, After: oneFile("namespace.yaml", "kind: Namespace\n"),
	}, {
		Key: folder.Key{Host: "large", DeploymentTarget: "reports"}, WaitsFor: "the GitOps repository",
	}}, "dev", 1<<20)
	want := `diff --git a/dev/clusters/a/hello-edge/namespace.yaml b/dev/clusters/a/hello-edge/namespace.yaml
new file mode 100644
--- /dev/null
+++ b/dev/clusters/a/hello-edge/namespace.yaml
@@ -0,0 +1 @@
+kind: Namespace
diff --git a/dev/large/hello-live/platform-config.yaml b/dev/large/hello-live/platform-config.yaml
--- a/dev/large/hello-live/platform-config.yaml
+++ b/dev/large/hello-live/platform-config.yaml
@@ -1,3 +1,3 @@
 data:
   A: one
-  B: two
+  B: three
# 1 folder not known yet.
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestUnifiedIsBoundedAndCountsOmittedFiles(t *testing.T) {
	t.Parallel()
	folders := make([]changes.FolderChange, 3)
	for i := range folders {
		folders[i] = changes.FolderChange{
			Key:   folder.Key{Host: "large", DeploymentTarget: string(rune('a' + i))},
			After: oneFile("x.txt", strings.Repeat("a line\n", 100)),
		}
	}
	got := changes.Unified(folders, "", 1500)
	if !strings.HasSuffix(got, "\n# 2 more files left out: the difference is longer than 1500 bytes.\n") ||
		!strings.Contains(got, "b/large/a/x.txt") {
		t.Error(got)
	}
	binary := changes.Unified(
		[]changes.FolderChange{{Key: folder.Key{Host: "h", DeploymentTarget: "t\n"}, Before: oneFile("x", "\x00"), After: oneFile("x", "y")}},
		"",
		1500,
	)
	if want := `Binary files "a/h/t\n/x" and "b/h/t\n/x" differ` + "\n"; !strings.HasSuffix(binary, want) {
		t.Error(binary)
	}
}

// TestGitAppliesUnified checks that git apply turns the old files into the new ones.
func TestGitAppliesUnified(t *testing.T) {
	t.Parallel()
	f, config := sample()
	before := mustRender(t, f, config)
	config["platform"] = `{"EMERGENCY":"112"}`
	f.Workloads[1].DeploymentTargets = nil
	f.Workspaces[0].ResourceQuota = map[string]string{"limits.cpu": "16"}
	after := mustRender(t, f, config)
	directory := t.TempDir()
	for key, files := range before.files {
		writeFiles(t, filepath.Join(directory, key), files)
	}
	command := exec.CommandContext(t.Context(), "git", "apply", "-")
	command.Dir = directory
	command.Env = append(os.Environ(), "GIT_DIR="+t.TempDir(), "GIT_CEILING_DIRECTORIES="+directory)
	command.Stdin = strings.NewReader(changes.Unified(foldersOf(before, after), "", 1<<20))
	if output, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s", err, output)
	}
	count := 0
	for key, files := range after.files {
		for _, file := range files {
			count++
			content, err := os.ReadFile(filepath.Join(directory, key, file.Name))
			if err != nil || string(content) != string(file.Content) {
				t.Errorf("%s/%s: %s %q", key, file.Name, err, content)
			}
		}
	}
	if count == 0 {
		t.Error("no files were compared")
	}
}

func writeFiles(t *testing.T, directory string, files []folder.File) {
	t.Helper()
	if err := os.MkdirAll(directory, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if err := os.WriteFile(filepath.Join(directory, file.Name), file.Content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
