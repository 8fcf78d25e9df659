package gitops_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/claim"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// pool returns the given number of clusters: pool-00, pool-01 and so on.
func pool(size int) []string {
	names := make([]string, size)
	for i := range names {
		names[i] = fmt.Sprintf("pool-%02d", i)
	}
	return names
}

// claimEdit wants the given number of clusters of a pool. The fleet has all of them.
func claimEdit(name string, number int, clusters []string) gitops.ClaimEdit {
	return gitops.ClaimEdit{
		Name: name, Path: "prod", Environment: "prod", Holder: "holder-of-" + name,
		Choose: func(tip gitops.ClaimTip) ([]string, error) {
			d, err := claim.Decide(claim.Situation{Number: number, Fleet: clusters, Pool: clusters, Held: tip.Held, Elsewhere: tip.Elsewhere})
			return d.Clusters, err
		},
	}
}

func releaseEdit(name string) gitops.ClaimEdit {
	edit := claimEdit(name, 0, nil)
	edit.Choose = nil
	return edit
}

func writeClaim(t testing.TB, r *repository, edit gitops.ClaimEdit) gitops.ClaimResult {
	t.Helper()
	result, err := newClient(gitops.BranchOptions{Now: func() time.Time { return time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC) }}).
		WriteClaim(t.Context(), r.remote, edit)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// expectRefusal expects an error and no commit.
func expectRefusal(t *testing.T, r *repository, edit gitops.ClaimEdit, want string, kind error) {
	t.Helper()
	before := r.tip()
	_, err := newClient(gitops.BranchOptions{}).WriteClaim(t.Context(), r.remote, edit)
	if err == nil || !strings.Contains(err.Error(), want) || kind != nil && !errors.Is(err, kind) {
		t.Errorf("err = %v, want %q", err, want)
	}
	if after := r.tip(); after != before {
		t.Errorf("got a commit: %s", r.git("log", "-1", "--format=%B"))
	}
}

func TestAClaimKeepsTakesAndReleases(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		r.commitFirst("prod/readme", "by hand")
		expectClaim := func(step string, edit gitops.ClaimEdit, subject string, want ...string) {
			t.Helper()
			result := writeClaim(t, r, edit)
			if !slices.Equal(result.Clusters, want) || result.Commit != r.tip() || result.Committed != (subject != "") {
				t.Errorf("%s: %+v, want %v", step, result, want)
			}
			if got := r.git("log", "-1", "--format=%s"); subject != "" && got != subject {
				t.Errorf("%s: got commit %q, want %q", step, got, subject)
			}
			branch := readBranch(t, r.remote)
			all, err := branch.ReadClaims(t.Context(), "prod")
			recorded := ""
			for _, claim := range all.Claims {
				if claim.Name == edit.Name {
					recorded = claim.Record
				}
			}
			if err != nil || recorded != result.Record {
				t.Errorf("%s: the record is %s, and %s in the result, %v", step, recorded, result.Record, err)
			}
		}
		clusters := pool(5)
		expectClaim("two", claimEdit("web", 2, clusters), "claim web: 2 taken", "pool-00", "pool-01")
		if text := r.git("log", "-1", "--format=%B"); !strings.Contains(
			text,
			"Taken:\n- pool-00\n- pool-01\n\nFlotilla-Claim: web\nFlotilla-Environment: prod",
		) {
			t.Error(text)
		}
		expectClaim("again", claimEdit("web", 2, clusters), "", "pool-00", "pool-01")
		expectClaim("another", claimEdit("api", 1, clusters), "claim api: 1 taken", "pool-02")
		expectClaim("more", claimEdit("web", 3, clusters), "claim web: 1 taken", "pool-00", "pool-01", "pool-03")
		expectClaim("fewer", claimEdit("web", 2, clusters), "claim web: 1 released", "pool-00", "pool-01")
		expectClaim("a cluster outside the fleet", claimEdit("web", 2, clusters[1:]), "claim web: 1 taken, 1 released", "pool-01", "pool-03")
		expectRefusal(
			t,
			r,
			claimEdit("big", 3, clusters[1:]),
			`3 clusters are wanted, and the pool of 4 clusters has 1 free: claim "api" has pool-02; claim "web" has pool-01, pool-03`,
			nil,
		)
		expectClaim("none", claimEdit("idle", 0, clusters), "claim idle: has no cluster")
		expectClaim("release", releaseEdit("web"), "claim web: 2 released")
		expectClaim("second release", releaseEdit("web"), "")
		expectClaim("release without clusters", releaseEdit("idle"), "claim idle: ends")

		claims, err := readBranch(t, r.remote).ReadClaims(t.Context(), "prod")
		if err != nil || claims.Commit != r.tip() || len(claims.Claims) != 1 || len(claims.Unreadable) != 0 {
			t.Fatalf("%+v, %v", claims, err)
		}
		api := claims.Claims[0]
		if api.Name != "api" || api.Path != "prod" || api.Environment != "prod" || api.Holder != "holder-of-api" ||
			!slices.Equal(api.Names(), []string{"pool-02"}) ||
			!api.Clusters[0].Since.Equal(time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC)) {
			t.Errorf("%+v", api)
		}
		all := r.files()
		if len(all) != 2 || all["prod/readme"] != "by hand" || all["prod/.flotilla/.claims/api.json"] == "" {
			t.Errorf("got files %v", all)
		}
		r.fsck()
	})
}

func TestAClaimBelongsToOneHolder(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	writeClaim(t, r, claimEdit("web", 2, pool(4)))

	other := claimEdit("web", 2, pool(4))
	other.Holder = "somebody-else"
	expectRefusal(
		t,
		r,
		other,
		`the claim belongs to another Terraform state: claim "web" already has the record prod/.flotilla/.claims/web.json`,
		gitops.ErrClaimHeld,
	)
	releaseByOther := other
	releaseByOther.Choose = nil
	if result := writeClaim(t, r, releaseByOther); result.Committed {
		t.Error("another holder's claim is released")
	}
	other.Adopt = true
	if result := writeClaim(t, r, other); !slices.Equal(result.Clusters, []string{"pool-00", "pool-01"}) || !result.Committed ||
		r.git("log", "-1", "--format=%s") != "claim web: repaired" {
		t.Errorf("%+v, %s", result, r.git("log", "-1", "--format=%s"))
	}
	expectRefusal(t, r, claimEdit("web", 2, pool(4)), "another Terraform state", gitops.ErrClaimHeld)

	// The record of a replaced resource passes to its successor.
	next := claimEdit("web", 1, pool(4))
	next.Holder, next.Holders = "successor", []string{"somebody-else"}
	writeClaim(t, r, next)
	if result := writeClaim(t, r, releaseByOther); result.Committed {
		t.Error("the successor's claim is released")
	}

	// A record without a holder belongs to a state without a recorded holder.
	r.commitByHand(func(w *workTree) {
		w.write("prod/.flotilla/.claims/web.json", `{"format":1,"clusters":[{"name":"pool-03"}],"note":"by hand"}`)
	})
	expectRefusal(t, r, claimEdit("web", 1, pool(4)), "another Terraform state", gitops.ErrClaimHeld)
	withoutHolder := claimEdit("web", 1, pool(4))
	withoutHolder.Holders = []string{""}
	if result := writeClaim(t, r, withoutHolder); !slices.Equal(result.Clusters, []string{"pool-03"}) ||
		!strings.Contains(r.files()["prod/.flotilla/.claims/web.json"], `"note": "by hand"`) {
		t.Errorf("%+v", result)
	}
}

func TestAClaimIsRenamedInOneCommit(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	writeClaim(t, r, claimEdit("web", 2, pool(4)))
	writeClaim(t, r, claimEdit("api", 1, pool(4)))
	renamed := claimEdit("shop", 2, pool(4))
	renamed.FormerName, renamed.Holder = "web", "holder-of-web"
	result := writeClaim(t, r, renamed)
	if !slices.Equal(result.Clusters, []string{"pool-00", "pool-01"}) ||
		r.git("log", "-1", "--format=%s") != "claim shop: takes over from web" ||
		r.git("rev-list", "--count", "main") != "3" {
		t.Errorf("%+v, %s", result, r.git("log", "--format=%s"))
	}
	if writeClaim(t, r, renamed).Committed {
		t.Error("a second rename makes a commit")
	}
	// A rename to the name of another claim is refused. Another holder's record under the former name is not changed.
	onto := claimEdit("api", 2, pool(4))
	onto.FormerName, onto.Holder = "shop", "holder-of-web"
	expectRefusal(t, r, onto, `claim "api" already has the record`, gitops.ErrClaimHeld)
	foreign := claimEdit("new", 1, pool(4))
	foreign.FormerName = "api"
	if result := writeClaim(t, r, foreign); !slices.Equal(result.Clusters, []string{"pool-03"}) {
		t.Errorf("%+v", result)
	}
	var names []string
	claims, err := readBranch(t, r.remote).ReadClaims(t.Context(), "prod")
	for _, claim := range claims.Claims {
		names = append(names, claim.Name)
	}
	if err != nil || !slices.Equal(names, []string{"api", "new", "shop"}) {
		t.Errorf("got claims %v, %v", names, err)
	}
}

func TestBrokenRecordsOfClaimsBlockNewClaims(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	writeClaim(t, r, claimEdit("web", 1, pool(4)))
	writeClaim(t, r, claimEdit("api", 1, pool(4)))
	r.commitByHand(func(w *workTree) {
		w.write("prod/.flotilla/.claims/web.json", "{")
		w.write("prod/.flotilla/.claims/notes.txt", "no claim")
		w.write("prod/.flotilla/.claims/folder.json/x", "no claim")
	})
	claims, err := readBranch(t, r.remote).ReadClaims(t.Context(), "prod")
	if err != nil || len(claims.Claims) != 1 || !slices.Equal(claims.Unreadable, []string{"prod/.flotilla/.claims/web.json"}) {
		t.Errorf("%+v, %v", claims, err)
	}
	// No claim takes clusters until the record is repaired. Claims may keep and release clusters.
	expectRefusal(
		t,
		r,
		claimEdit("new", 1, pool(4)),
		"it is not known which clusters are free; repair or remove prod/.flotilla/.claims/web.json",
		gitops.ErrClaimUnreadable,
	)
	expectRefusal(t, r, claimEdit("api", 2, pool(4)), "it is not known which", gitops.ErrClaimUnreadable)
	writeClaim(t, r, claimEdit("api", 1, pool(4)))
	writeClaim(t, r, claimEdit("api", 0, pool(4)))
	expectRefusal(t, r, claimEdit("web", 1, pool(4)), "another Terraform state", gitops.ErrClaimHeld)
	// The holder repairs the record.
	repair := claimEdit("web", 1, pool(4))
	repair.Holders = []string{repair.Holder}
	writeClaim(t, r, repair)
	writeClaim(t, r, claimEdit("new", 1, pool(4)))

	// A manual change gives one cluster to two claims. Both are refused until one is destroyed.
	r.commitByHand(func(w *workTree) {
		w.write("prod/.flotilla/.claims/new.json", `{"format":1,"holder":"holder-of-new","clusters":[{"name":"pool-00"}]}`)
	})
	for _, name := range []string{"new", "web"} {
		expectRefusal(
			t,
			r,
			claimEdit(name, 1, pool(4)),
			`cluster "pool-00" belongs to claim "new" (prod/.flotilla/.claims/new.json), claim "web" (prod/.flotilla/.claims/web.json)`,
			gitops.ErrClaimTwice,
		)
	}
	release := claimEdit("new", 1, pool(4))
	release.Choose, release.Holders = nil, []string{release.Holder}
	writeClaim(t, r, release)
	if result := writeClaim(t, r, claimEdit("web", 1, pool(4))); !slices.Equal(result.Clusters, []string{"pool-00"}) || result.Committed {
		t.Errorf("%+v", result)
	}

	r.commitByHand(func(w *workTree) {
		w.remove("prod/.flotilla")
		w.write("prod/.flotilla/.claims", "a file")
	})
	expectRefusal(t, r, claimEdit("web", 1, pool(4)), ".claims", nil)
	var blocked *git.BlockedError
	if _, err := readBranch(t, r.remote).ReadClaims(t.Context(), "prod"); !errors.As(err, &blocked) {
		t.Errorf("err = %v", err)
	}
}

func TestInvalidClaimsAreRefused(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	r.commitFirst("x", "x")
	for want, change := range map[string]func(e *gitops.ClaimEdit){
		"begins or ends with a dot": func(e *gitops.ClaimEdit) { e.Name = ".web" },
		"device name":               func(e *gitops.ClaimEdit) { e.Name = "aux" },
		"too long":                  func(e *gitops.ClaimEdit) { e.Name = strings.Repeat("x", git.MaxSegment) },
		"former name: name":         func(e *gitops.ClaimEdit) { e.FormerName = "a/b" },
		"its own":                   func(e *gitops.ClaimEdit) { e.FormerName = e.Name },
		"environment or holder":     func(e *gitops.ClaimEdit) { e.Holder = "a\n" },
		"commit message":            func(e *gitops.ClaimEdit) { e.Subject = "a\x00" },
		"author":                    func(e *gitops.ClaimEdit) { e.Author.Name = "a\nb" },
		"path":                      func(e *gitops.ClaimEdit) { e.Path = "../x" },
		"is wanted twice": func(e *gitops.ClaimEdit) {
			e.Choose = func(gitops.ClaimTip) ([]string, error) { return []string{"a", "a"}, nil }
		},
		"not the name of a cluster": func(e *gitops.ClaimEdit) {
			e.Choose = func(gitops.ClaimTip) ([]string, error) { return []string{"a b"}, nil }
		},
		"may have 10000 clusters": func(e *gitops.ClaimEdit) {
			e.Choose = func(gitops.ClaimTip) ([]string, error) { return make([]string, gitops.MaxClaimed+1), nil }
		},
	} {
		edit := claimEdit("web", 1, pool(1))
		change(&edit)
		expectRefusal(t, r, edit, want, nil)
	}
	writeClaim(t, r, claimEdit("web", 1, pool(1)))
	greedy := claimEdit("api", 1, nil)
	greedy.Choose = func(gitops.ClaimTip) ([]string, error) { return pool(1), nil }
	expectRefusal(t, r, greedy, `cluster "pool-00" belongs to claim "web"`, nil)
}

func TestConcurrentClaimsAndOwnersLoseNothing(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[2])
	r.commitFirst("x", "x")
	client := newClient(gitops.BranchOptions{})
	var group sync.WaitGroup
	var mu sync.Mutex
	all := map[string]string{}
	for i := range 6 {
		group.Go(func() {
			name := fmt.Sprintf("claim-%d", i)
			result, err := client.WriteClaim(t.Context(), r.remote, claimEdit(name, 2, pool(12)))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, cluster := range result.Clusters {
				if other, twice := all[cluster]; twice {
					t.Errorf("%s belongs to %s and %s", cluster, other, name)
				}
				all[cluster] = name
			}
		})
	}
	group.Go(func() {
		if _, err := client.Apply(t.Context(), r.remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})); err != nil {
			t.Error(err)
		}
	})
	group.Wait()
	if len(all) != 12 {
		t.Errorf("got %d claimed clusters, want 12", len(all))
	}
	if commits := r.git("rev-list", "--count", "main"); commits != "8" {
		t.Errorf("got %s commits, want 8", commits)
	}
	if text := r.git("log", "--format=%B", "main"); !strings.Contains(text, "claim claim-0") ||
		!strings.Contains(text, "Flotilla-Claim: claim-5") ||
		!strings.Contains(text, "Flotilla-Assignment: dev") {
		t.Error(text)
	}
	if _, err := client.WriteClaim(t.Context(), r.remote, releaseEdit("claim-3")); err != nil {
		t.Error(err)
	}
	if result := writeClaim(t, r, claimEdit("late", 2, pool(12))); len(result.Clusters) != 2 {
		t.Errorf("%+v", result)
	}
	r.fsck()
}

func TestAnInventoryHasTheClaims(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		writeFourOwners(t, r)
		for i, path := range []string{"", "dev", "env/eu/prod", "pools"} {
			edit := claimEdit(fmt.Sprintf("claim-%d", i), i, pool(4))
			edit.Path = path
			writeClaim(t, r, edit)
		}
		r.commitByHand(func(w *workTree) { w.write("pools/.flotilla/.claims/bad.json", "{}") })
		found := readInventory(t, readBranch(t, r.remote), gitops.InventoryFilter{})
		var names []string
		for _, claim := range found.Claims {
			names = append(names, fmt.Sprintf("%s:%s:%d", claim.Path, claim.Name, len(claim.Clusters)))
		}
		if got := strings.Join(names, " "); got != ":claim-0:0 dev:claim-1:1 env/eu/prod:claim-2:2 pools:claim-3:3" {
			t.Errorf("got claims %s", got)
		}
		if len(found.Owners) != 4 || len(found.Assignments) != 16 ||
			!slices.Equal(found.Unreadable, []string{"pools/.flotilla/.claims/bad.json"}) {
			t.Errorf("got %d owners, %d assignments, unreadable %v", len(found.Owners), len(found.Assignments), found.Unreadable)
		}
		below := readInventory(t, readBranch(t, r.remote), gitops.InventoryFilter{Path: "dev", Owner: "nobody"})
		if len(below.Claims) != 1 || below.Claims[0].Name != "claim-1" {
			t.Errorf("%+v", below.Claims)
		}
	})
}

func TestAClaimCreatesARepository(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	r.remote.URL += "-new"
	r.directory += "-new"
	claims, err := readBranch(t, r.remote).ReadClaims(t.Context(), "prod")
	if err != nil || claims.Commit != "" || len(claims.Claims) != 0 {
		t.Errorf("%+v, %v", claims, err)
	}
	if result := writeClaim(t, r, releaseEdit("web")); result.Committed || result.Commit != "" {
		t.Errorf("%+v", result)
	}
	if result := writeClaim(t, r, claimEdit("web", 1, pool(1))); !result.Committed || result.Record == "" {
		t.Errorf("%+v", result)
	}
	if _, err := readBranch(t, r.remote).ReadClaims(t.Context(), "../x"); err == nil {
		t.Error("an invalid path is accepted")
	}
}
