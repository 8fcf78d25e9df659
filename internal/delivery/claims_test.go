package delivery_test

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// writeClaim claims clusters in a new process and returns the state.
func (s *site) writeClaim(claim delivery.Claim, formerName string, clusters ...string) delivery.ClaimState {
	s.t.Helper()
	result, err := s.newService().WriteClaim(context.Background(), claim, gitops.ClaimEdit{
		FormerName: formerName, Environment: "prod", Holder: "h", Holders: []string{""},
		Choose: func(gitops.ClaimTip) ([]string, error) { return clusters, nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return delivery.ClaimState{Claim: claim, Holder: "h", Record: result.Record, Clusters: result.Clusters}
}

func (s *site) refreshClaim(state delivery.ClaimState) delivery.SeenClaim {
	s.t.Helper()
	seen, err := s.newService().RefreshClaim(context.Background(), state)
	if err != nil {
		s.t.Fatal(err)
	}
	return seen
}

func TestRefreshFindsChangesOfAClaim(t *testing.T) {
	s := newSite(t)
	web := delivery.Claim{Location: s.location("gitops.git", "prod"), Name: "web"}
	state := s.writeClaim(web, "", "a", "b")
	if seen := s.refreshClaim(state); seen.Touched || !slices.Equal(seen.Clusters, []string{"a", "b"}) {
		t.Errorf("%+v", seen)
	}
	// A killed apply may have written more clusters than the state has, or another name.
	s.writeClaim(web, "", "a", "b", "c")
	if seen := s.refreshClaim(state); !seen.Touched || seen.Foreign || !slices.Equal(seen.Clusters, []string{"a", "b", "c"}) {
		t.Errorf("%+v", seen)
	}
	shop := delivery.Claim{Location: web.Location, Name: "shop"}
	s.writeClaim(shop, "web", "a", "b")
	if seen := s.refreshClaim(state); !seen.Touched || len(seen.Clusters) > 0 || len(seen.Lost) > 0 {
		t.Errorf("%+v", seen)
	}
	stranger := state
	stranger.Name, stranger.Holder, stranger.Record = "shop", "x", ""
	if seen := s.refreshClaim(stranger); !seen.Foreign {
		t.Errorf("%+v", seen)
	}
	missing := state
	missing.Location = s.location("nowhere.git", "prod")
	if seen := s.refreshClaim(missing); !seen.Gone {
		t.Errorf("%+v", seen)
	}
	invalid := state
	invalid.Location.Path = "../x"
	if _, err := s.newService().RefreshClaim(context.Background(), invalid); err == nil {
		t.Error("the invalid path is read")
	}
}

func TestOnlyItsHolderReleasesAClaim(t *testing.T) {
	s := newSite(t)
	web := delivery.Claim{Location: s.location("gitops.git", "prod"), Name: "web"}
	s.writeClaim(web, "", "a")
	for _, step := range []struct {
		holder  string
		foreign bool
		commits string
	}{{"x", true, "1"}, {"h", false, "2"}, {"h", false, "2"}} {
		foreign, err := s.newService().ReleaseClaim(context.Background(), web, []string{step.holder}, "")
		if err != nil || foreign != step.foreign || s.commitCount("gitops.git", "prod") != step.commits {
			t.Errorf("%+v: %v, %v, %s commits", step, foreign, err, s.commitCount("gitops.git", "prod"))
		}
	}
	if _, err := s.newService().ReleaseClaim(context.Background(), delivery.Claim{Location: s.location("nowhere.git", "prod"), Name: "web"}, []string{"h"}, ""); err != nil {
		t.Errorf("a missing repository: %v", err)
	}
	if _, err := s.newService().ReleaseClaim(context.Background(), delivery.Claim{Location: web.Location, Name: "aux"}, nil, ""); err == nil {
		t.Error("the claim with an invalid name is released")
	}
}

// Two claims with one location are duplicates even if one of their URLs has a tilde.
func TestTildeAndHomeDirectoryAreOneLocation(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("USERPROFILE", home)
	client := delivery.New(delivery.ServiceOptions{})
	claim := func(url string) delivery.Claim {
		return delivery.Claim{Location: folder.Location{URL: url, Branch: "prod"}, Name: "web"}
	}
	if err := client.RegisterClaim(claim(filepath.ToSlash(home) + "/gitops.git")); err != nil {
		t.Error(err)
	}
	if err := client.RegisterClaim(claim("~/gitops.git")); !errors.Is(err, delivery.ErrDuplicateClaim) {
		t.Errorf("err = %v", err)
	}
}

func TestDuplicateClaimsAreRefused(t *testing.T) {
	s := newSite(t)
	client := s.newService()
	web := delivery.Claim{Location: s.location("gitops.git", "prod"), Name: "web"}
	respelt := web
	respelt.Location.URL = "file://" + filepath.ToSlash(web.Location.URL)
	if err := client.RegisterClaim(web); err != nil {
		t.Error(err)
	}
	if err := client.RegisterClaim(respelt); !errors.Is(err, delivery.ErrDuplicateClaim) {
		t.Errorf("err = %v", err)
	}
	if err := client.RegisterClaim(delivery.Claim{Location: web.Location, Name: "api"}); err != nil {
		t.Error(err)
	}
	if holders := client.KnownClaimHolders(web); len(holders) > 0 {
		t.Errorf("got holders %v before any was read", holders)
	}
}
