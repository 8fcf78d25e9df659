package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const claimedTwice = `Cluster "pool-2" belongs to claim "api" (prod/.flotilla/.claims/api.json), claim "web" (prod/.flotilla/.claims/web.json).`

// Somebody who may push writes a record that lists a cluster which a claim has already, as a new claim or into the
// record of one that exists.
func TestAClusterInTheRecordsOfTwoClaimsIsAnErrorOfBothThatNamesThem(t *testing.T) {
	t.Parallel()
	url := bare(t)
	from := poolFleet("pool-1", "pool-2", "pool-3", "pool-4", "pool-5")
	w, other := providertest.New(startProvider), providertest.New(startProvider)
	web, api := claims(claimOn(url, "web", 2, from)), claims(claimOn(url, "api", 1, from))
	apply(t, w, web)
	apply(t, other, api)
	late, said := w.Plan(t.Context(), claims(claimOn(url, "web", 3, from)))
	if said.Err() != nil {
		t.Fatal(said)
	}
	record := git(t, url, "show", "prod:prod/.flotilla/.claims/api.json")
	commitByHand(t, url, "prod", func(folder string) {
		writeFile(t, claimRecordPath(folder, "api"), strings.Replace(record, `"clusters": [`, `"clusters": [{"name": "pool-2"},`, 1)+"\n")
	})
	before := countCommits(t, url, "prod")
	expectRefusedClaim(t, w, web, "Cluster belongs to two claims", claimedTwice, "revert it, or remove the cluster from that record")
	expectRefusedClaim(t, w, claims(claimOn(url, "web", 1, from)), claimedTwice)
	expectRefusedClaim(t, w, claims(claimOn(url, "shop", 2, from)), claimedTwice)
	expectRefusedClaim(t, other, api, "Cluster belongs to two claims", claimedTwice)
	// The commit came between plan and apply: nothing is written.
	if said := w.ApplyPlan(t.Context(), late); !said.Has("Cluster belongs to two claims") || !strings.Contains(said.String(), `"pool-2"`) {
		t.Errorf("said is %s", said)
	}
	if after := countCommits(t, url, "prod"); after != before {
		t.Error("a commit was made")
	}
	read := func() string {
		t.Helper()
		_, said := w.ReadData(
			t.Context(),
			providertest.Configuration{},
			"flotilla_inventory",
			map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "prod"}},
		)
		if said.Err() != nil {
			t.Fatal(said)
		}
		return said.String()
	}
	if said := read(); !words(claimedTwice).MatchString(said) {
		t.Errorf("the inventory says %s", said)
	}
	// Several clusters are one warning.
	commitByHand(t, url, "prod", func(folder string) {
		writeFile(
			t,
			claimRecordPath(folder, "api"),
			strings.Replace(readFile(t, claimRecordPath(folder, "api")), `"clusters": [`, `"clusters": [{"name": "pool-1"},`, 1),
		)
	})
	if said := read(); strings.Count(said, "Cluster belongs to two claims") != 1 || !strings.Contains(said, `Cluster "pool-1" belongs to`) ||
		!words(claimedTwice).MatchString(said) {
		t.Errorf("of two clusters the inventory says %s", said)
	}
	// Mended in the record, both are as they were; api takes out what was added to its record.
	commitByHand(t, url, "prod", func(folder string) {
		writeFile(
			t,
			claimRecordPath(folder, "api"),
			strings.Replace(readFile(t, claimRecordPath(folder, "api")), `{"name": "pool-1"},{"name": "pool-2"},`, "", 1),
		)
	})
	for _, one := range []struct {
		w             *providertest.Workspace
		configuration providertest.Configuration
		has           string
	}{{w, web, "pool-1 pool-2"}, {other, api, "pool-3"}} {
		if got, said := claimPlan(t, one.w, one.configuration); said.Err() != nil || got != "" {
			t.Errorf("the plan says %q, %s", got, said)
		}
		if got := namesIn(one.w.State.Values(claimAddress)); got != one.has {
			t.Errorf("the state has %q", got)
		}
	}
	if said := read(); strings.Contains(said, "two claims") {
		t.Errorf("the inventory says %s", said)
	}
}

// A forged claim that no state has is mended by removing its record.
func TestAForgedClaimTakesNoClusterOfAnother(t *testing.T) {
	t.Parallel()
	t.Run("stand-in", func(t *testing.T) {
		t.Parallel()
		checkForgedClaim(t, providertest.New(startProvider))
	})
	withTools(t, checkForgedClaim)
}

func checkForgedClaim(t *testing.T, w providertest.Runner) {
	t.Helper()
	url := bare(t)
	web := claims(claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3")))
	apply(t, w, web)
	commitByHand(t, url, "prod", func(folder string) {
		writeFile(t, claimRecordPath(folder, "api"), `{"format":1,"holder":"x","clusters":[{"name":"pool-2"}]}`)
	})
	expectRefusedClaim(t, w, web, claimedTwice)
	commitByHand(t, url, "prod", func(folder string) { removeFile(t, claimRecordPath(folder, "api")) })
	if got, said := claimPlan(t, w, web); said.Err() != nil || got != "" {
		t.Errorf("the plan says %q, %s", got, said)
	}
	// A destroy is possible while it lasts: it releases what the state has.
	commitByHand(t, url, "prod", func(folder string) {
		writeFile(t, claimRecordPath(folder, "api"), `{"format":1,"holder":"x","clusters":[{"name":"pool-2"}]}`)
	})
	apply(t, w, claims())
	if got := git(t, url, "ls-tree", "-r", "--name-only", "prod"); got != "prod/.flotilla/.claims/api.json" {
		t.Errorf("left is %s", got)
	}
}

func TestAPlanWarnsOfAClaimsRecordThatOthersChanged(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	web := claims(claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3")))
	apply(t, w, web)
	commitByHand(t, url, "prod", func(folder string) {
		writeFile(t, claimRecordPath(folder, "web"), `{"format":1,"clusters":[{"name":"pool-1"},{"name":"pool-2"}]}`)
	})
	if _, said := claimPlan(t, w, web); !words(
		"The record prod/.flotilla/.claims/web.json is not what this claim wrote: it was changed or removed by others. This apply writes it again.",
	).
		MatchString(said.String()) {
		t.Errorf("said is %s", said)
	}
	apply(t, w, web)
	if _, said := claimPlan(t, w, web); len(said) > 0 {
		t.Errorf("said is %s", said)
	}
}

// A record that nobody can have written by Flotilla is told by the plan, and the next apply writes it again, as large as it was.
func TestATamperedClaimIsToldAndRepaired(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(content string) string{
		"no JSON": func(string) string { return "not JSON" },
		"8 MiB":   func(c string) string { return c + strings.Repeat(" ", 8<<20) },
		"10,000 levels": func(c string) string {
			return strings.Replace(c, "{", `{"x":`+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)+",", 1)
		},
		"escapes":                 func(c string) string { return strings.Replace(c, `"pool-2"`, `"\u001b[2J"`, 1) },
		"no UTF-8":                func(c string) string { return strings.Replace(c, `"pool-2"`, "\"pool-\xff\"", 1) },
		"letters that look alike": func(c string) string { return strings.Replace(c, `"pool-2"`, "\"p\u043eol-2\"", 1) },
		"a cluster twice": func(c string) string {
			return strings.Replace(c, `"clusters": [`, `"clusters": [{"name": "pool-1"},`, 1)
		},
		"members twice": func(c string) string { return strings.Replace(c, "{", `{"clusters": [{"name": "pool-3"}],`, 1) },
		"a number without end": func(c string) string {
			return strings.Replace(c, "{", `{"format": 1`+strings.Repeat("0", 1<<20)+",", 1)
		},
		"members that nobody knows": func(c string) string {
			return strings.Replace(c, "{", `{"x": [`+strings.Repeat(unknownMember+",", 100)+`1],`, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, w := bare(t), providertest.New(startProvider)
			web := claims(claimOn(url, "web", 2, poolFleet("pool-1", "pool-2", "pool-3")))
			apply(t, w, web)
			tampered, before := 0, len(git(t, url, "show", "prod:prod/.flotilla/.claims/web.json"))
			commitByHand(t, url, "prod", func(folder string) {
				at := claimRecordPath(folder, "web")
				content := change(readFile(t, at))
				tampered = len(content)
				writeFile(t, at, content)
			})
			began := time.Now()
			_, said := claimPlan(t, w, web)
			if said.Err() != nil || !strings.Contains(said.String(), "was changed or removed by others. This apply writes it again.") {
				t.Fatalf("said is %s", said)
			}
			apply(t, w, web)
			after := git(t, url, "show", "prod:prod/.flotilla/.claims/web.json")
			t.Logf("%d bytes in, %d out, in %s: %s", tampered, len(after), time.Since(began), said)
			if len(after) > 2*max(before, tampered) || namesIn(w.State.Values(claimAddress)) != "pool-1 pool-2" ||
				!strings.Contains(after, `"pool-2"`) {
				t.Errorf("the record is %.500s, and the state has %s", after, namesIn(w.State.Values(claimAddress)))
			}
			if _, said := claimPlan(t, w, web); len(said) > 0 {
				t.Errorf("the next plan says %s", said)
			}
		})
	}
}
