package provider_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const claimedTwice = `Cluster "pool-2" belongs to claim "api" (prod/.flotilla/.claims/api.json), claim "web" (prod/.flotilla/.claims/web.json).`

func TestAClusterInTwoClaimsIsAnErrorThatNamesBoth(t *testing.T) {
	t.Parallel()
	url := bare(t)
	fleet := poolFleet("pool-1", "pool-2", "pool-3", "pool-4", "pool-5")
	w, other := providertest.New(startProvider), providertest.New(startProvider)
	web, api := claims(claimOn(url, "web", 2, fleet)), claims(claimOn(url, "api", 1, fleet))
	apply(t, w, web)
	apply(t, other, api)
	late, diags := w.Plan(t.Context(), claims(claimOn(url, "web", 3, fleet)))
	if diags.Err() != nil {
		t.Fatal(diags)
	}
	record := git(t, url, "show", "prod:prod/.flotilla/.claims/api.json")
	commitByHand(t, url, "prod", func(folder string) {
		writeFile(t, claimRecordPath(folder, "api"), strings.Replace(record, `"clusters": [`, `"clusters": [{"name": "pool-2"},`, 1)+"\n")
	})
	before := countCommits(t, url, "prod")
	expectRefusedClaim(t, w, web, "Cluster belongs to two claims", claimedTwice, "revert it, or remove the cluster from that record")
	expectRefusedClaim(t, w, claims(claimOn(url, "web", 1, fleet)), claimedTwice)
	expectRefusedClaim(t, w, claims(claimOn(url, "shop", 2, fleet)), claimedTwice)
	expectRefusedClaim(t, other, api, "Cluster belongs to two claims", claimedTwice)
	// The commit was made between plan and apply: nothing is written.
	if diags := w.ApplyPlan(t.Context(), late); !diags.Has("Cluster belongs to two claims") || !strings.Contains(diags.String(), `"pool-2"`) {
		t.Errorf("got diagnostics %s", diags)
	}
	if after := countCommits(t, url, "prod"); after != before {
		t.Error("a commit was made")
	}
	read := func() string {
		t.Helper()
		_, diags := w.ReadData(
			t.Context(),
			providertest.Configuration{},
			"flotilla_inventory",
			map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "prod"}},
		)
		if diags.Err() != nil {
			t.Fatal(diags)
		}
		return diags.String()
	}
	if message := read(); !words(claimedTwice).MatchString(message) {
		t.Errorf("the inventory says %s", message)
	}
	commitByHand(t, url, "prod", func(folder string) {
		writeFile(
			t,
			claimRecordPath(folder, "api"),
			strings.Replace(readFile(t, claimRecordPath(folder, "api")), `"clusters": [`, `"clusters": [{"name": "pool-1"},`, 1),
		)
	})
	if message := read(); strings.Count(message, "Cluster belongs to two claims") != 1 || !strings.Contains(message, `Cluster "pool-1" belongs to`) ||
		!words(claimedTwice).MatchString(message) {
		t.Errorf("for two clusters, the inventory says %s", message)
	}
	// After the record is reverted, both claims are unchanged, and api removes the added cluster.
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
		if got, diags := claimPlan(t, one.w, one.configuration); diags.Err() != nil || got != "" {
			t.Errorf("the plan says %q, %s", got, diags)
		}
		if got := namesIn(one.w.State.Values(claimAddress)); got != one.has {
			t.Errorf("the state has %q", got)
		}
	}
	if message := read(); strings.Contains(message, "two claims") {
		t.Errorf("the inventory says %s", message)
	}
}

// Removing the record of a forged claim repairs everything.
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
	if got, diags := claimPlan(t, w, web); diags.Err() != nil || got != "" {
		t.Errorf("the plan says %q, %s", got, diags)
	}
	// A destroy works despite the forged claim: it releases the clusters in the state.
	commitByHand(t, url, "prod", func(folder string) {
		writeFile(t, claimRecordPath(folder, "api"), `{"format":1,"holder":"x","clusters":[{"name":"pool-2"}]}`)
	})
	apply(t, w, claims())
	if got := git(t, url, "ls-tree", "-r", "--name-only", "prod"); got != "prod/.flotilla/.claims/api.json" {
		t.Errorf("the remaining files are %s", got)
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
	if _, diags := claimPlan(t, w, web); !words(
		"The record prod/.flotilla/.claims/web.json is not what this claim wrote: it was changed or removed by others. This apply writes it again.",
	).
		MatchString(diags.String()) {
		t.Errorf("got diagnostics %s", diags)
	}
	apply(t, w, web)
	if _, diags := claimPlan(t, w, web); len(diags) > 0 {
		t.Errorf("got diagnostics %s", diags)
	}
}

// Flotilla cannot have written these records. The repaired record must not grow.
func TestATamperedClaimIsReportedAndRepaired(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(content string) string{
		"not JSON": func(string) string { return "not JSON" },
		"8 MiB":    func(c string) string { return c + strings.Repeat(" ", 8<<20) },
		"10,000 levels": func(c string) string {
			return strings.Replace(c, "{", `{"x":`+strings.Repeat("[", 9_000)+strings.Repeat("]", 9_000)+",", 1)
		},
		"escapes":         func(c string) string { return strings.Replace(c, `"pool-2"`, `"\u001b[2J"`, 1) },
		"invalid UTF-8":   func(c string) string { return strings.Replace(c, `"pool-2"`, "\"pool-\xff\"", 1) },
		"similar letters": func(c string) string { return strings.Replace(c, `"pool-2"`, "\"p\u043eol-2\"", 1) },
		"a duplicate cluster": func(c string) string {
			return strings.Replace(c, `"clusters": [`, `"clusters": [{"name": "pool-1"},`, 1)
		},
		"duplicate members": func(c string) string { return strings.Replace(c, "{", `{"clusters": [{"name": "pool-3"}],`, 1) },
		"a long number": func(c string) string {
			return strings.Replace(c, "{", `{"format": 1`+strings.Repeat("0", 1<<20)+",", 1)
		},
		"unknown members": func(c string) string {
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
				record := claimRecordPath(folder, "web")
				content := change(readFile(t, record))
				tampered = len(content)
				writeFile(t, record, content)
			})
			began := time.Now()
			_, diags := claimPlan(t, w, web)
			if diags.Err() != nil || !strings.Contains(diags.String(), "was changed or removed by others. This apply writes it again.") {
				t.Fatalf("got diagnostics %s", diags)
			}
			apply(t, w, web)
			after := git(t, url, "show", "prod:prod/.flotilla/.claims/web.json")
			t.Logf("%d bytes in, %d out, in %s: %s", tampered, len(after), time.Since(began), diags)
			if len(after) > 2*max(before, tampered) || namesIn(w.State.Values(claimAddress)) != "pool-1 pool-2" ||
				!strings.Contains(after, `"pool-2"`) {
				t.Errorf("the record is %.500s, and the state has %s", after, namesIn(w.State.Values(claimAddress)))
			}
			if _, diags := claimPlan(t, w, web); len(diags) > 0 {
				t.Errorf("the next plan says %s", diags)
			}
		})
	}
}
