package provider_test

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// treeWriter writes trees into a bare repository, like an attacker with push access.
type treeWriter struct {
	t   *testing.T
	url string
}

func newTreeWriter(t *testing.T) treeWriter {
	t.Helper()
	url := bare(t)
	git(t, t.TempDir(), "init", "--quiet", "--bare", url)
	return treeWriter{t, url}
}

func (f treeWriter) git(input string, arguments ...string) string {
	f.t.Helper()
	command := exec.CommandContext(f.t.Context(), "git", arguments...)
	command.Dir, command.Stdin = f.url, strings.NewReader(input)
	output, err := command.Output()
	if err != nil {
		f.t.Fatalf("git %s: %s", arguments, err)
	}
	return strings.TrimSpace(string(output))
}

func (f treeWriter) writeBlob(content string) string {
	return f.git(content, "hash-object", "-w", "--stdin")
}

// writeTree writes a folder with one entry under several names.
func (f treeWriter) writeTree(number int, name, kind, id string) string {
	mode := map[string]string{"tree": "040000", "blob": "100644"}[kind]
	var entries strings.Builder
	for i := range number {
		fmt.Fprintf(&entries, "%s %s %s\t%s\n", mode, kind, id, fmt.Sprintf(name, i))
	}
	return f.git(entries.String(), "mktree")
}

func (f treeWriter) writeSingleTree(name, kind, id string) string {
	return f.writeTree(1, strings.ReplaceAll(name, "%", "%%")+"%.0d", kind, id)
}

func (f treeWriter) commitTree(tree string) {
	commit := f.git("", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit-tree", "-m", "forged", tree)
	f.git("", "update-ref", "refs/heads/dev", commit)
}

// paddedRecord returns a record of an assignment with trailing spaces.
func paddedRecord(padding int) string {
	return `{"format": 1, "deployment_targets": {}}` + strings.Repeat(" ", padding)
}

// Git stores equal files and folders once, so a push of some kilobytes can make millions of folders and gigabytes of records.
func TestManyCopiesOfARecordAreErrorsAndTakeNoMemory(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	for name, attack := range map[string]struct {
		kind         string
		writeRecords func(f treeWriter) (tree string)
		want         string
	}{
		"1,000,000,000 folders": {"flotilla_assignment", func(f treeWriter) string {
			lowest := f.writeTree(1_000, "d%d", "tree", f.writeSingleTree("a", "blob", f.writeBlob("a")))
			return f.writeTree(1_000, "d%d", "tree", f.writeTree(1_000, "d%d", "tree", lowest))
		}, "has more than 500000 folders and records up to 3 levels below it"},
		"1,000,000 records": {"flotilla_assignment", func(f treeWriter) string {
			records := f.writeTree(1_000, "t%d.json", "blob", f.writeBlob(paddedRecord(0)))
			return f.writeSingleTree(".flotilla", "tree", f.writeTree(1_000, "o%d", "tree", records))
		}, "has more than 500000 folders and records up to 3 levels below it"},
		"300 MiB of records": {"flotilla_assignment", func(f treeWriter) string {
			records := f.writeTree(30, "t%d.json", "blob", f.writeBlob(paddedRecord(10*mebibyte)))
			return f.writeSingleTree(".flotilla", "tree", f.writeSingleTree("dev", "tree", records))
		}, "records of assignments have more than 256 MiB together"},
		"40 MiB of claims": {"flotilla_cluster_claim", func(f treeWriter) string {
			claims := f.writeTree(20, "c%d.json", "blob", f.writeBlob(`{"format": 1, "clusters": []}`+strings.Repeat(" ", 2*mebibyte)))
			return f.writeSingleTree(".flotilla", "tree", f.writeSingleTree(".claims", "tree", claims))
		}, `records of claims in ".flotilla/.claims" have more than 32 MiB together`},
	} {
		t.Run(name, func(t *testing.T) {
			playAlways(t, name, "1,000,000,000 folders", "40 MiB of claims")
			t.Parallel()
			f := newTreeWriter(t)
			f.commitTree(attack.writeRecords(f))
			repo := map[string]any{"url": f.url, "branch": "dev"}
			_, _, diags := providertest.New(startProvider).
				Query(t.Context(), providertest.Configuration{}, attack.kind, map[string]any{"gitops_repo": repo})
			if diags.Err() == nil || !strings.Contains(diags.String(), attack.want) ||
				!strings.Contains(diags.String(), "find the commit that added them") {
				t.Errorf("got diagnostics %.500s", diags)
			}
		})
	}
}

// An assignment reads the records with its name. A claim reads the records of all claims.
func TestPlansReadNoMoreRecordsThanFlotillaWrites(t *testing.T) {
	t.Parallel()
	f := newTreeWriter(t)
	records := f.writeTree(30, "t%d.json", "blob", f.writeBlob(paddedRecord(10<<20)))
	claims := f.writeTree(20, "c%d.json", "blob", f.writeBlob(`{"format": 1, "clusters": []}`+strings.Repeat(" ", 2<<20)))
	both := "040000 tree " + records + "\tdev\n040000 tree " + f.writeSingleTree(
		"dev",
		"tree",
		records,
	) + "\tother\n040000 tree " + claims + "\t.claims\n"
	f.commitTree(f.writeSingleTree(".flotilla", "tree", f.git(both, "mktree")))
	location := map[string]any{"gitops_repo": map[string]any{"url": f.url, "branch": "dev"}}
	for want, configuration := range map[string]providertest.Configuration{
		"records of assignments have more than 256 MiB together": assigned(f.url, fleetOf(nil), location),
		"records of claims in": forgedClaim(f.url, location),
	} {
		_, diags := providertest.New(startProvider).Plan(t.Context(), configuration)
		if diags.Err() == nil || !strings.Contains(diags.String(), want) {
			t.Errorf("got diagnostics %.500[2]s, want %[1]s", want, diags)
		}
	}
}

func forgedClaim(url string, at map[string]any) providertest.Configuration {
	base := claimOn(url, "web", 1, poolFleet("pool-1"))
	return claims(with(base, "gitops_repo", at["gitops_repo"]))
}

// Queries turn these names into configuration, claims into values.
func TestForgedNamesInRecordsReachNoConfiguration(t *testing.T) {
	t.Parallel()
	for _, cluster := range []string{
		"../../etc", "/etc/passwd", `${file("/etc/passwd")}`, "%{if-true}x%{endif}", "pool-1\u001b[2J", "рool-1", "pool-1 ", ".", "a/b", strings.Repeat("a", 300),
	} {
		t.Run(fmt.Sprintf("cluster %.20q", cluster), func(t *testing.T) {
			playAlways(t, cluster, "../../etc", `${file("/etc/passwd")}`, "pool-1\u001b[2J")
			t.Parallel()
			url := bare(t)
			apply(t, providertest.New(startProvider), claims(claimOn(url, "web", 1, poolFleet("pool-1"))))
			commitByHand(t, url, "prod", func(folder string) {
				name, _ := json.Marshal(cluster) // strings always encode
				writeFile(t, claimRecordPath(folder, "web"), fmt.Sprintf(`{"format": 1, "clusters": [{"name": %s}]}`, name))
			})
			w := providertest.New(startProvider)
			identity := map[string]any{"url": url, "branch": "prod", "path": "prod", "name": "web"}
			diags := w.ImportIdentity(t.Context(), claims(claimOn(url, "web", 1, poolFleet("pool-1"))), claimAddress, identity)
			if diags.Err() == nil || !diags.Has("Nothing to import") {
				t.Errorf("the import has diagnostics %s and state %v", diags, w.State.Values(claimAddress))
			}
			repo := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "prod"}}
			identities, _, diags := w.Query(t.Context(), providertest.Configuration{}, "flotilla_cluster_claim", repo)
			if len(identities) > 0 || !diags.Has("Records cannot be read") || strings.Contains(diags.String(), "\x1b") {
				t.Errorf("got claims %v and diagnostics %s", identities, diags)
			}
		})
	}
	url := bare(t)
	apply(
		t,
		providertest.New(startProvider),
		assigned(url, fleetOf(nil), map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "prod"}}),
	)
	repository{cloneURL: url}.changeByGit(t, "prod", func(folder string) {
		for _, name := range []string{"Dev", "DEV", "de_v", "dev.x", "-dev"} {
			writeFile(t, folder+"/.flotilla/"+name+"/large.json", `{"format": 1, "deployment_targets": {}}`)
			writeFile(t, folder+"/.flotilla/.claims/"+name+".json", `{"format": 1, "clusters": []}`)
		}
	})
	for kind, want := range map[string]int{"flotilla_assignment": 1, "flotilla_cluster_claim": 0} {
		w := providertest.New(startProvider)
		repo := map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "prod"}}
		identities, _, diags := w.Query(t.Context(), providertest.Configuration{}, kind, repo)
		if len(identities) != want || (want > 0 && diags.Err() != nil) || !diags.Has("Records have names that Flotilla does not write") {
			t.Errorf("%s: got identities %v and diagnostics %s", kind, identities, diags)
		}
	}
}
