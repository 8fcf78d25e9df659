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

// pool are so many clusters: pool-00, pool-01 and so on.
func pool(size int) []string {
	names := make([]string, size)
	for i := range names {
		names[i] = fmt.Sprintf("pool-%02d", i)
	}
	return names
}

// claiming wants so many clusters of a pool, all of which are in the fleet.
func claiming(name string, number int, from []string) gitops.ClaimEdit {
	return gitops.ClaimEdit{
		Name: name, Path: "prod", Environment: "prod", Holder: "holder-of-" + name,
		Choose: func(tip gitops.ClaimTip) ([]string, error) {
			d, err := claim.Decide(claim.Situation{Number: number, Fleet: from, Pool: from, Held: tip.Held, Elsewhere: tip.Elsewhere})
			return d.Clusters, err
		},
	}
}

// released is an edit that ends a claim.
func released(name string) gitops.ClaimEdit {
	edit := claiming(name, 0, nil)
	edit.Choose = nil
	return edit
}

// claimed claims in a process of its own.
func claimed(t testing.TB, r *repository, edit gitops.ClaimEdit) gitops.ClaimResult {
	t.Helper()
	result, err := newClient(gitops.BranchOptions{Now: func() time.Time { return time.Date(2026, 11, 22, 5, 0, 0, 0, time.UTC) }}).
		WriteClaim(t.Context(), r.remote, edit)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func refused(t *testing.T, r *repository, edit gitops.ClaimEdit, want string, kind error) {
	t.Helper()
	before := r.tip()
	_, err := newClient(gitops.BranchOptions{}).WriteClaim(t.Context(), r.remote, edit)
	if err == nil || !strings.Contains(err.Error(), want) || kind != nil && !errors.Is(err, kind) {
		t.Errorf("err = %v, want %q", err, want)
	}
	if after := r.tip(); after != before {
		t.Errorf("a commit was made: %s", r.git("log", "-1", "--format=%B"))
	}
}

func TestAClaimKeepsTakesAndReleases(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		r.begin("prod/readme", "by hand")
		has := func(step string, edit gitops.ClaimEdit, subject string, want ...string) {
			t.Helper()
			result := claimed(t, r, edit)
			if !slices.Equal(result.Clusters, want) || result.Commit != r.tip() || result.Committed != (subject != "") {
				t.Errorf("%s: %+v, want %v", step, result, want)
			}
			if got := r.git("log", "-1", "--format=%s"); subject != "" && got != subject {
				t.Errorf("%s: the commit is %q", step, got)
			}
			look := lookAt(t, r.remote)
			all, err := look.ReadClaims(t.Context(), "prod")
			recorded := ""
			for _, claim := range all.Claims {
				if claim.Name == edit.Name {
					recorded = claim.Record
				}
			}
			if err != nil || recorded != result.Record {
				t.Errorf("%s: the record is %s, said to be %s, %v", step, recorded, result.Record, err)
			}
		}
		from := pool(5)
		has("two", claiming("web", 2, from), "claim web: 2 taken", "pool-00", "pool-01")
		if text := r.git("log", "-1", "--format=%B"); !strings.Contains(
			text,
			"Taken:\n- pool-00\n- pool-01\n\nFlotilla-Claim: web\nFlotilla-Environment: prod",
		) {
			t.Error(text)
		}
		has("again", claiming("web", 2, from), "", "pool-00", "pool-01")
		has("another", claiming("api", 1, from), "claim api: 1 taken", "pool-02")
		has("more", claiming("web", 3, from), "claim web: 1 taken", "pool-00", "pool-01", "pool-03")
		has("fewer", claiming("web", 2, from), "claim web: 1 released", "pool-00", "pool-01")
		has("one has left", claiming("web", 2, from[1:]), "claim web: 1 taken, 1 released", "pool-01", "pool-03")
		refused(
			t,
			r,
			claiming("big", 3, from[1:]),
			`3 clusters are wanted, and the pool of 4 clusters has 1 free: claim "api" has pool-02; claim "web" has pool-01, pool-03`,
			nil,
		)
		has("none", claiming("idle", 0, from), "claim idle: has no cluster")
		has("gone", released("web"), "claim web: 2 released")
		has("gone already", released("web"), "")
		has("gone without any", released("idle"), "claim idle: ends")

		claims, err := lookAt(t, r.remote).ReadClaims(t.Context(), "prod")
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
			t.Errorf("files are %v", all)
		}
		r.fsck()
	})
}

func TestAClaimIsOfOneHolder(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	claimed(t, r, claiming("web", 2, pool(4)))

	other := claiming("web", 2, pool(4))
	other.Holder = "somebody-else"
	refused(
		t,
		r,
		other,
		`the claim belongs to another Terraform state: claim "web" already has the record prod/.flotilla/.claims/web.json`,
		gitops.ErrClaimHeld,
	)
	gone := other
	gone.Choose = nil
	if result := claimed(t, r, gone); result.Committed {
		t.Error("another's claim was released")
	}
	other.Adopt = true
	if result := claimed(t, r, other); !slices.Equal(result.Clusters, []string{"pool-00", "pool-01"}) || !result.Committed ||
		r.git("log", "-1", "--format=%s") != "claim web: repaired" {
		t.Errorf("%+v, %s", result, r.git("log", "-1", "--format=%s"))
	}
	refused(t, r, claiming("web", 2, pool(4)), "another Terraform state", gitops.ErrClaimHeld)

	// A replaced object's record is its successor's.
	next := claiming("web", 1, pool(4))
	next.Holder, next.Holders = "successor", []string{"somebody-else"}
	claimed(t, r, next)
	if result := claimed(t, r, gone); result.Committed {
		t.Error("the successor's claim was released")
	}

	// Without a holder it is of whoever knows no better.
	r.byHand(func(w *workTree) {
		w.write("prod/.flotilla/.claims/web.json", `{"format":1,"clusters":[{"name":"pool-03"}],"note":"by hand"}`)
	})
	refused(t, r, claiming("web", 1, pool(4)), "another Terraform state", gitops.ErrClaimHeld)
	known := claiming("web", 1, pool(4))
	known.Holders = []string{""}
	if result := claimed(t, r, known); !slices.Equal(result.Clusters, []string{"pool-03"}) ||
		!strings.Contains(r.files()["prod/.flotilla/.claims/web.json"], `"note": "by hand"`) {
		t.Errorf("%+v", result)
	}
}

func TestAClaimIsRenamedInOneCommit(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	claimed(t, r, claiming("web", 2, pool(4)))
	claimed(t, r, claiming("api", 1, pool(4)))
	renamed := claiming("shop", 2, pool(4))
	renamed.FormerName, renamed.Holder = "web", "holder-of-web"
	result := claimed(t, r, renamed)
	if !slices.Equal(result.Clusters, []string{"pool-00", "pool-01"}) ||
		r.git("log", "-1", "--format=%s") != "claim shop: takes over from web" ||
		r.git("rev-list", "--count", "main") != "3" {
		t.Errorf("%+v, %s", result, r.git("log", "--format=%s"))
	}
	if claimed(t, r, renamed).Committed {
		t.Error("a second time makes a commit")
	}
	// Onto another claim it does not go, and another's record under the former name is not touched.
	onto := claiming("api", 2, pool(4))
	onto.FormerName, onto.Holder = "shop", "holder-of-web"
	refused(t, r, onto, `claim "api" already has the record`, gitops.ErrClaimHeld)
	foreign := claiming("new", 1, pool(4))
	foreign.FormerName = "api"
	if result := claimed(t, r, foreign); !slices.Equal(result.Clusters, []string{"pool-03"}) {
		t.Errorf("%+v", result)
	}
	var names []string
	claims, err := lookAt(t, r.remote).ReadClaims(t.Context(), "prod")
	for _, claim := range claims.Claims {
		names = append(names, claim.Name)
	}
	if err != nil || !slices.Equal(names, []string{"api", "new", "shop"}) {
		t.Errorf("claims are %v, %v", names, err)
	}
}

func TestRecordsOfClaimsThatSomebodyBroke(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	claimed(t, r, claiming("web", 1, pool(4)))
	claimed(t, r, claiming("api", 1, pool(4)))
	r.byHand(func(w *workTree) {
		w.write("prod/.flotilla/.claims/web.json", "{")
		w.write("prod/.flotilla/.claims/notes.txt", "no claim")
		w.write("prod/.flotilla/.claims/folder.json/x", "no claim")
	})
	claims, err := lookAt(t, r.remote).ReadClaims(t.Context(), "prod")
	if err != nil || len(claims.Claims) != 1 || !slices.Equal(claims.Unreadable, []string{"prod/.flotilla/.claims/web.json"}) {
		t.Errorf("%+v, %v", claims, err)
	}
	// Nobody takes anything until it is mended; what one has stays, and goes.
	refused(
		t,
		r,
		claiming("new", 1, pool(4)),
		"it is not known which clusters are free; repair or remove prod/.flotilla/.claims/web.json",
		gitops.ErrClaimUnreadable,
	)
	refused(t, r, claiming("api", 2, pool(4)), "it is not known which", gitops.ErrClaimUnreadable)
	claimed(t, r, claiming("api", 1, pool(4)))
	claimed(t, r, claiming("api", 0, pool(4)))
	refused(t, r, claiming("web", 1, pool(4)), "another Terraform state", gitops.ErrClaimHeld)
	// Who knows the claim puts it right, and then it keeps what it says.
	mend := claiming("web", 1, pool(4))
	mend.Holders = []string{mend.Holder}
	claimed(t, r, mend)
	claimed(t, r, claiming("new", 1, pool(4)))

	// By hand, two claims have one cluster: neither lets go of it, and a destroy of one mends it.
	r.byHand(func(w *workTree) {
		w.write("prod/.flotilla/.claims/new.json", `{"format":1,"holder":"holder-of-new","clusters":[{"name":"pool-00"}]}`)
	})
	for _, name := range []string{"new", "web"} {
		refused(
			t,
			r,
			claiming(name, 1, pool(4)),
			`cluster "pool-00" belongs to claim "new" (prod/.flotilla/.claims/new.json), claim "web" (prod/.flotilla/.claims/web.json)`,
			gitops.ErrClaimTwice,
		)
	}
	ends := claiming("new", 1, pool(4))
	ends.Choose, ends.Holders = nil, []string{ends.Holder}
	claimed(t, r, ends)
	if result := claimed(t, r, claiming("web", 1, pool(4))); !slices.Equal(result.Clusters, []string{"pool-00"}) || result.Committed {
		t.Errorf("%+v", result)
	}

	r.byHand(func(w *workTree) {
		w.remove("prod/.flotilla")
		w.write("prod/.flotilla/.claims", "a file")
	})
	refused(t, r, claiming("web", 1, pool(4)), ".claims", nil)
	var blocked *git.BlockedError
	if _, err := lookAt(t, r.remote).ReadClaims(t.Context(), "prod"); !errors.As(err, &blocked) {
		t.Errorf("err = %v", err)
	}
}

func TestWhatNoClaimCanBe(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	r.begin("x", "x")
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
		edit := claiming("web", 1, pool(1))
		change(&edit)
		refused(t, r, edit, want, nil)
	}
	claimed(t, r, claiming("web", 1, pool(1)))
	greedy := claiming("api", 1, nil)
	greedy.Choose = func(gitops.ClaimTip) ([]string, error) { return pool(1), nil }
	refused(t, r, greedy, `cluster "pool-00" belongs to claim "web"`, nil)
}

func TestClaimsAndOwnersOfOneBranchFollowEachOther(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[2])
	r.begin("x", "x")
	client := newClient(gitops.BranchOptions{})
	var group sync.WaitGroup
	var mu sync.Mutex
	all := map[string]string{}
	for i := range 6 {
		group.Go(func() {
			name := fmt.Sprintf("claim-%d", i)
			result, err := client.WriteClaim(t.Context(), r.remote, claiming(name, 2, pool(12)))
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			mu.Lock()
			defer mu.Unlock()
			for _, cluster := range result.Clusters {
				if other, twice := all[cluster]; twice {
					t.Errorf("%s is of %s and of %s", cluster, other, name)
				}
				all[cluster] = name
			}
		})
	}
	group.Go(func() {
		if _, err := client.Apply(t.Context(), r.remote, devEdit(t, map[string]gitops.FolderEdit{"drone/app": rendered(t, "a", "1")})); err != nil {
			t.Error(err)
		}
	})
	group.Wait()
	if len(all) != 12 {
		t.Errorf("%d clusters were claimed, want 12", len(all))
	}
	if commits := r.git("rev-list", "--count", "main"); commits != "8" {
		t.Errorf("%s commits", commits)
	}
	if text := r.git("log", "--format=%B", "main"); !strings.Contains(text, "claim claim-0") ||
		!strings.Contains(text, "Flotilla-Claim: claim-5") ||
		!strings.Contains(text, "Flotilla-Assignment: dev") {
		t.Error(text)
	}
	if _, err := client.WriteClaim(t.Context(), r.remote, released("claim-3")); err != nil {
		t.Error(err)
	}
	if result := claimed(t, r, claiming("late", 2, pool(12))); len(result.Clusters) != 2 {
		t.Errorf("%+v", result)
	}
	r.fsck()
}

func TestAnInventoryHasTheClaims(t *testing.T) {
	t.Parallel()
	forEachServing(t, func(t *testing.T, r *repository) {
		fourInventories(t, r)
		for i, at := range []string{"", "dev", "env/eu/prod", "pools"} {
			edit := claiming(fmt.Sprintf("claim-%d", i), i, pool(4))
			edit.Path = at
			claimed(t, r, edit)
		}
		r.byHand(func(w *workTree) { w.write("pools/.flotilla/.claims/bad.json", "{}") })
		found := inventory(t, lookAt(t, r.remote), gitops.InventoryFilter{})
		var names []string
		for _, claim := range found.Claims {
			names = append(names, fmt.Sprintf("%s:%s:%d", claim.Path, claim.Name, len(claim.Clusters)))
		}
		if got := strings.Join(names, " "); got != ":claim-0:0 dev:claim-1:1 env/eu/prod:claim-2:2 pools:claim-3:3" {
			t.Errorf("claims are %s", got)
		}
		if len(found.Owners) != 4 || len(found.Assignments) != 16 ||
			!slices.Equal(found.Unreadable, []string{"pools/.flotilla/.claims/bad.json"}) {
			t.Errorf("%d owners, %d assignments, unreadable %v", len(found.Owners), len(found.Assignments), found.Unreadable)
		}
		below := inventory(t, lookAt(t, r.remote), gitops.InventoryFilter{Path: "dev", Owner: "nobody"})
		if len(below.Claims) != 1 || below.Claims[0].Name != "claim-1" {
			t.Errorf("%+v", below.Claims)
		}
	})
}

func TestAClaimBeginsARepository(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	r.remote.URL += "-new"
	r.directory += "-new"
	claims, err := lookAt(t, r.remote).ReadClaims(t.Context(), "prod")
	if err != nil || claims.Commit != "" || len(claims.Claims) != 0 {
		t.Errorf("%+v, %v", claims, err)
	}
	if result := claimed(t, r, released("web")); result.Committed || result.Commit != "" {
		t.Errorf("%+v", result)
	}
	if result := claimed(t, r, claiming("web", 1, pool(1))); !result.Committed || result.Record == "" {
		t.Errorf("%+v", result)
	}
	if _, err := lookAt(t, r.remote).ReadClaims(t.Context(), "../x"); err == nil {
		t.Error("a path that cannot be one is read")
	}
}
