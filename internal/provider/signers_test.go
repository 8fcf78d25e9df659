package provider_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const signedRecord = "clusters/all/.flotilla/dev/large.json"

// signedBranch is a branch of an assignment with signing_key and allowed_signers.
type signedBranch struct {
	repo       repository
	w          *providertest.Workspace
	privateKey string
	configure  func(further map[string]any) providertest.Configuration
}

func newSignedBranch(t *testing.T) signedBranch {
	t.Helper()
	private, public := sshKey(t, "")
	_, another := sshKey(t, "")
	s := signedBranch{repo: bareRepository(t), w: providertest.New(startProvider), privateKey: private}
	s.configure = func(further map[string]any) providertest.Configuration {
		configuration := assigned(s.repo.url, fleetOf(nil), further)
		configuration.Provider = map[string]any{"git": map[string]any{
			"signing_key": private, "allowed_signers": []any{another, public + " fleet@example.com\n"},
		}}
		return configuration
	}
	apply(t, s.w, s.configure(nil))
	return s
}

func addFolderToRecord(t *testing.T) func(folder string) {
	return func(folder string) {
		path := filepath.Join(folder, filepath.FromSlash(signedRecord))
		writeFile(t, path, strings.Replace(
			readFile(t, path),
			`"deployment_targets": {`,
			`"deployment_targets": {"shop-live": {"workload": "shop", "deployment_target": "live", "tree": "4b825dc642cb6eb9a060e54bf8d69288fbee4904"},`,
			1,
		))
		writeFile(t, filepath.Join(folder, "clusters", "all", "large", "shop-live", "by.yaml"), "by: hand\n")
	}
}

func changeRecord(t *testing.T) func(folder string) {
	return func(folder string) {
		path := filepath.Join(folder, filepath.FromSlash(signedRecord))
		writeFile(t, path, strings.Replace(readFile(t, path), `"workload": "app"`, `"workload": "other"`, 1))
	}
}

func (s signedBranch) tip(t *testing.T) string {
	t.Helper()
	return git(t, s.repo.url, "rev-parse", "dev")
}

// recordMessage returns the text about the record in plans and errors.
func (s signedBranch) recordMessage(t *testing.T) string {
	t.Helper()
	return fmt.Sprintf("record %q was changed by commit %s, which none of allowed_signers has signed", signedRecord, s.tip(t))
}

func (s signedBranch) requireRepair(t *testing.T) {
	t.Helper()
	plan, diags := s.w.Plan(t.Context(), s.configure(nil))
	if diags.Err() != nil || !strings.Contains(strings.Join(linesOf(plan), "\n"), s.recordMessage(t)+": it is not believed, and written again") {
		t.Fatalf("the plan says %q, %s", linesOf(plan), diags)
	}
	apply(t, s.w, s.configure(nil))
	if commit := git(t, s.repo.url, "cat-file", "commit", "dev"); !strings.Contains(commit, "gpgsig -----BEGIN SSH SIGNATURE-----") {
		t.Errorf("the repair is %s", commit)
	}
	if plan, diags := s.w.Plan(t.Context(), s.configure(nil)); diags.Err() != nil ||
		len(plan.Changes) > 0 && plan.Change(assignment) != nil && plan.Change(assignment).Action != providertest.NoOp {
		t.Errorf("the next plan says %q, %s", linesOf(plan), diags)
	}
}

func TestUnsignedRecordIsDriftThatNamesTheCommit(t *testing.T) {
	t.Parallel()
	s := newSignedBranch(t)
	s.repo.change(t, "dev", changeRecord(t))
	s.requireRepair(t)
	// A Git host may squash commits of the state into an unsigned one.
	folder := s.repo.clone(t, "dev")
	git(t, folder, "checkout", "--quiet", "--orphan", "squashed")
	git(t, folder, "commit", "--quiet", "--message", "Squashed")
	git(t, folder, "push", "--quiet", "--force", s.repo.cloneURL, "HEAD:dev")
	if plan, diags := s.w.Plan(t.Context(), s.configure(nil)); diags.Err() != nil ||
		strings.Contains(strings.Join(linesOf(plan), "\n"), "allowed_signers") {
		t.Errorf("squashed, the plan says %q, %s", linesOf(plan), diags)
	}
}

func TestImportIgnoresUnsignedRecords(t *testing.T) {
	t.Parallel()
	s := newSignedBranch(t)
	id := s.repo.url + "#dev:clusters/all:dev"
	s.w.Lose(assignment)
	if diags := s.w.Import(t.Context(), s.configure(nil), assignment, id); diags.Err() != nil {
		t.Fatal(diags)
	}
	if plan, diags := s.w.Plan(t.Context(), s.configure(nil)); diags.Err() != nil ||
		strings.Contains(strings.Join(linesOf(plan), "\n"), "allowed_signers") {
		t.Errorf("signed, the plan says %q, %s", linesOf(plan), diags)
	}
	s.repo.change(t, "dev", changeRecord(t))
	s.w.Lose(assignment)
	if diags := s.w.Import(t.Context(), s.configure(nil), assignment, id); diags.Err() != nil {
		t.Fatal(diags)
	}
	s.requireRepair(t)
}

func TestFoldersOfUnsignedRecordsAreNotRemoved(t *testing.T) {
	t.Parallel()
	for name, prepare := range map[string]func(s signedBranch){
		"with its state": func(signedBranch) {},
		"imported": func(s signedBranch) {
			s.w.Lose(assignment)
			if diags := s.w.Import(t.Context(), s.configure(nil), assignment, s.repo.url+"#dev:clusters/all:dev"); diags.Err() != nil {
				t.Fatal(diags)
			}
		},
		"its state is lost": func(s signedBranch) { s.w.Lose(assignment) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSignedBranch(t)
			s.repo.change(t, "dev", addFolderToRecord(t))
			prepare(s)
			for _, adopt := range []bool{false, true} {
				_, diags := s.w.Plan(t.Context(), s.configure(map[string]any{"adopt": adopt}))
				if !diags.Has("Record is not signed by a known key") || !strings.Contains(diags.String(), s.recordMessage(t)) ||
					!strings.Contains(diags.String(), "large/shop-live") {
					t.Errorf("adopt = %t: the diagnostics are %s", adopt, diags)
				}
			}
			// The error's remedy: revert the commit.
			bad := s.tip(t)
			s.repo.changeByGit(t, "dev", func(folder string) { git(t, folder, "revert", "--no-commit", bad) })
			apply(t, s.w, s.configure(map[string]any{"adopt": true}))
		})
	}
}

func TestSignedRecordIsTrusted(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("needs ssh-keygen, which is not on PATH")
	}
	s := newSignedBranch(t)
	folder := s.repo.clone(t, "dev")
	addFolderToRecord(t)(folder)
	key := filepath.Join(t.TempDir(), "key")
	writeFile(t, key, s.privateKey)
	if err := exec.Command("chmod", "600", key).Run(); err != nil {
		t.Fatal(err)
	}
	git(t, folder, "add", "--all")
	git(t, folder, "-c", "gpg.format=ssh", "-c", "user.signingkey="+key, "commit", "--quiet", "-S", "--message", "By hand")
	// Later commits and a merge of other files do not matter.
	git(t, folder, "checkout", "--quiet", "-b", "side", "HEAD~1")
	writeFile(t, filepath.Join(folder, "README.md"), "by hand\n")
	git(t, folder, "add", "--all")
	git(t, folder, "commit", "--quiet", "--message", "By hand")
	git(t, folder, "merge", "--quiet", "--no-edit", "dev")
	for range 70 { // more than the first read fetches
		git(t, folder, "commit", "--quiet", "--allow-empty", "--message", "By hand")
	}
	git(t, folder, "push", "--quiet", s.repo.cloneURL, "HEAD:dev")
	plan, diags := s.w.Plan(t.Context(), s.configure(map[string]any{"adopt": true}))
	if diags.Err() != nil || strings.Contains(strings.Join(linesOf(plan), "\n"), "allowed_signers") {
		t.Fatalf("the plan says %q, %s", linesOf(plan), diags)
	}
	apply(t, s.w, s.configure(map[string]any{"adopt": true}))
	if got := git(t, s.repo.url, "ls-tree", "-r", "--name-only", "dev"); strings.Contains(got, "shop-live") {
		t.Errorf("the branch still has %s", got)
	}
}

// The restored record was once signed by a known key.
func TestRecordRestoredByAnUnsignedMergeIsUnsigned(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("ssh-keygen"); err != nil {
		t.Skip("needs ssh-keygen, which is not on PATH")
	}
	s := newSignedBranch(t)
	folder := s.repo.clone(t, "dev")
	former := git(t, folder, "rev-parse", "HEAD")
	changeRecord(t)(folder)
	key := filepath.Join(t.TempDir(), "key")
	writeFile(t, key, s.privateKey)
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	commit := exec.CommandContext(
		t.Context(),
		"git",
		"-C",
		folder,
		"-c",
		"user.name=a",
		"-c",
		"user.email=a@example.com",
		"-c",
		"gpg.format=ssh",
		"-c",
		"user.signingkey="+key,
		"commit",
		"--quiet",
		"--all",
		"-S",
		"--message",
		"Later",
	)
	commit.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2099-01-01T00:00:00Z")
	if output, err := commit.CombinedOutput(); err != nil {
		t.Fatal(string(output))
	}
	git(t, folder, "push", "--quiet", s.repo.cloneURL, "HEAD:dev")
	importAgain := func() {
		t.Helper()
		s.w.Lose(assignment)
		if diags := s.w.Import(t.Context(), s.configure(nil), assignment, s.repo.url+"#dev:clusters/all:dev"); diags.Err() != nil {
			t.Fatal(diags)
		}
	}
	importAgain()
	if plan, diags := s.w.Plan(t.Context(), s.configure(nil)); diags.Err() != nil ||
		strings.Contains(strings.Join(linesOf(plan), "\n"), "allowed_signers") {
		t.Errorf("signed, the plan says %q, %s", linesOf(plan), diags)
	}
	merge := git(
		t,
		folder,
		"-c",
		"user.name=a",
		"-c",
		"user.email=a@example.com",
		"commit-tree",
		"-m",
		"Merge",
		"-p",
		"HEAD",
		"-p",
		former,
		former+"^{tree}",
	)
	git(t, folder, "push", "--quiet", s.repo.cloneURL, merge+":dev")
	importAgain()
	s.requireRepair(t)
}

func TestUnsignedClaimRecordIsIgnored(t *testing.T) {
	t.Parallel()
	url := bare(t)
	private, public := sshKey(t, "")
	w := providertest.New(startProvider)
	web := claims(claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3", "pool-4")))
	web.Provider = map[string]any{"git": map[string]any{"signing_key": private, "allowed_signers": []any{public}}}
	apply(t, w, web)
	commitByHand(t, url, "prod", func(folder string) {
		path := claimRecordPath(folder, "web")
		writeFile(t, path, strings.Replace(readFile(t, path), "pool-2", "pool-4", 1))
	})
	message := fmt.Sprintf(
		"record %q was changed by commit %s, which none of allowed_signers has signed",
		"prod/.flotilla/.claims/web.json",
		git(t, url, "rev-parse", "prod"),
	)
	if got, diags := claimPlan(t, w, web); got != "pool-1 pool-2" ||
		!strings.Contains(diags.String(), "This claim does not believe its list: the "+message) {
		t.Errorf("the plan says %q, %s", got, diags)
	}
	w.Lose(claimAddress)
	if diags := w.Import(t.Context(), web, claimAddress, url+"#prod:prod:web"); !diags.Has("Record is not signed by a known key") ||
		!strings.Contains(diags.String(), message) {
		t.Errorf("the import says %s", diags)
	}
}

func (s signedBranch) readData(t *testing.T, source string, configuration providertest.Configuration) (map[string]any, string) {
	t.Helper()
	values, diags := s.w.ReadData(
		t.Context(),
		configuration,
		source,
		map[string]any{"gitops_repo": map[string]any{"url": s.repo.url, "branch": "dev", "path": "clusters/all"}},
	)
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	return values, diags.String()
}

func TestInventoryAndHistoryReportUnsignedRecords(t *testing.T) {
	t.Parallel()
	s := newSignedBranch(t)
	newest := func(configuration providertest.Configuration) any {
		history, _ := s.readData(t, "flotilla_history", configuration)
		return history["commits"].([]any)[0].(map[string]any)["signed"]
	}
	if _, warnings := s.readData(t, "flotilla_inventory", s.configure(nil)); warnings != "" || newest(s.configure(nil)) != true {
		t.Errorf("after a signed commit, the inventory says %s, and the history %v", warnings, newest(s.configure(nil)))
	}
	s.repo.change(t, "dev", addFolderToRecord(t))
	if _, warnings := s.readData(t, "flotilla_inventory", s.configure(nil)); !strings.Contains(warnings, "Records are not signed by a known key") ||
		!strings.Contains(warnings, s.recordMessage(t)) ||
		newest(s.configure(nil)) != false {
		t.Errorf("after a commit by hand, the inventory says %s, and the history %v", warnings, newest(s.configure(nil)))
	}
	if _, warnings := s.readData(t, "flotilla_inventory", providertest.Configuration{}); warnings != "" || newest(providertest.Configuration{}) != nil {
		t.Errorf("without allowed_signers the inventory says %s, and the history %v", warnings, newest(providertest.Configuration{}))
	}
}

// A forged record takes clusters out of the pool, too.
func TestClaimReportsClustersOfUnsignedRecords(t *testing.T) {
	t.Parallel()
	url := bare(t)
	private, public := sshKey(t, "")
	w := providertest.New(startProvider)
	web := func(number int) providertest.Configuration {
		return claims(claimOn(url, "web", number, poolFleet("pool-1", "pool-2", "pool-3")))
	}
	withSigners := func(configuration providertest.Configuration) providertest.Configuration {
		configuration.Provider = map[string]any{"git": map[string]any{"signing_key": private, "allowed_signers": []any{public}}}
		return configuration
	}
	apply(t, w, withSigners(web(1)))
	apply(t, providertest.New(startProvider), withSigners(claims(claimOn(url, "ours", 1, poolFleet("pool-1", "pool-2")))))
	commitByHand(t, url, "prod", func(folder string) {
		writeFile(t, claimRecordPath(folder, "ghost"), strings.Replace(readFile(t, claimRecordPath(folder, "ours")), "pool-2", "pool-3", 1))
	})
	message := fmt.Sprintf(
		`Claim "ghost" has pool-3, which this claim does not take: the record "prod/.flotilla/.claims/ghost.json" was changed by commit %s, which none of allowed_signers has signed`,
		git(t, url, "rev-parse", "prod"),
	)
	if _, diags := w.Plan(t.Context(), withSigners(web(2))); !diags.Has("Clusters of the pool are taken by a record that no known key has signed") ||
		!strings.Contains(diags.String(), message) ||
		strings.Contains(diags.String(), `Claim "ours"`) ||
		!strings.Contains(diags.String(), "2 clusters are wanted") {
		t.Errorf("the plan for two clusters says %s", diags)
	}
	if _, diags := w.Plan(t.Context(), withSigners(web(1))); len(diags) > 0 {
		t.Errorf("the plan for one cluster says %s", diags)
	}
	if _, diags := w.Plan(t.Context(), web(2)); strings.Contains(diags.String(), "signed") {
		t.Errorf("without allowed_signers the plan says %s", diags)
	}
	inventory := func(configuration providertest.Configuration) (map[string]any, string) {
		read, diags := w.ReadData(
			t.Context(),
			configuration,
			"flotilla_inventory",
			map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "prod"}},
		)
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		return read, diags.String()
	}
	if read, _ := inventory(providertest.Configuration{}); len(read["claims"].([]any)) != 3 {
		t.Errorf("the inventory lists %v", read["claims"])
	}
	if _, warnings := inventory(withSigners(web(1))); !strings.Contains(warnings, "ghost.json") || strings.Contains(warnings, "ours.json") {
		t.Errorf("the inventory says %s", warnings)
	}
	commitByHand(t, url, "prod", func(folder string) { removeAll(t, claimRecordPath(folder, "ghost")) })
	if _, diags := w.Plan(t.Context(), withSigners(web(2))); len(diags) > 0 {
		t.Errorf("without the record the plan says %s", diags)
	}
}

func TestTerraformReportsUnsignedRecords(t *testing.T) {
	t.Parallel()
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := bareRepository(t)
			private, public := sshKey(t, "")
			provider := fmt.Sprintf(
				"provider \"flotilla\" {\n  git = {\n    signing_key     = %q\n    allowed_signers = [%q]\n  }\n}\n",
				private,
				public,
			)
			w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + provider + small{}.config(repo)})
			w.run("apply", "-input=false", "-auto-approve")
			var record string
			repo.change(t, "dev", func(folder string) {
				found, err := filepath.Glob(filepath.Join(folder, ".flotilla", "*", "large.json"))
				if err != nil || len(found) != 1 {
					t.Fatalf("got records %v, want one: %v", found, err)
				}
				record, _ = filepath.Rel(folder, found[0])
				writeFile(t, found[0], strings.Replace(readFile(t, found[0]), `"workload": "`, `"workload": "x`, 1))
			})
			want := fmt.Sprintf(
				"%s was changed by commit %s, which none of allowed_signers has signed",
				filepath.ToSlash(record)+`\"`,
				git(t, repo.url, "rev-parse", "dev"),
			)
			if got := w.run("plan", "-input=false", "-no-color"); !strings.Contains(got, want) {
				t.Errorf("the plan does not say %q:\n%s", want, got)
			}
			w.run("apply", "-input=false", "-auto-approve")
			w.run("plan", "-input=false", "-detailed-exitcode")
		})
	}
}
