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

// claimed claims clusters in a process of its own, and returns what the state then knows.
func (s *site) claimed(claim delivery.Claim, formerly string, clusters ...string) delivery.ClaimState {
	s.t.Helper()
	result, err := s.process().WriteClaim(context.Background(), claim, gitops.ClaimEdit{
		FormerName: formerly, Environment: "prod", Holder: "h", Holders: []string{""},
		Choose: func(gitops.ClaimTip) ([]string, error) { return clusters, nil },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return delivery.ClaimState{Claim: claim, Holder: "h", Record: result.Record, Clusters: result.Clusters}
}

func (s *site) seen(known delivery.ClaimState) delivery.SeenClaim {
	s.t.Helper()
	seen, err := s.process().RefreshClaim(context.Background(), known)
	if err != nil {
		s.t.Fatal(err)
	}
	return seen
}

func TestARefreshOfAClaim(t *testing.T) {
	s := newSite(t)
	web := delivery.Claim{Location: s.location("gitops.git", "prod"), Name: "web"}
	known := s.claimed(web, "", "a", "b")
	if seen := s.seen(known); seen.Touched || !slices.Equal(seen.Clusters, []string{"a", "b"}) {
		t.Errorf("%+v", seen)
	}
	// An apply that was killed has written more than the state knows, or under another name.
	s.claimed(web, "", "a", "b", "c")
	if seen := s.seen(known); !seen.Touched || seen.Foreign || !slices.Equal(seen.Clusters, []string{"a", "b", "c"}) {
		t.Errorf("%+v", seen)
	}
	shop := delivery.Claim{Location: web.Location, Name: "shop"}
	s.claimed(shop, "web", "a", "b")
	if seen := s.seen(known); !seen.Touched || len(seen.Clusters) > 0 || len(seen.Lost) > 0 {
		t.Errorf("%+v", seen)
	}
	stranger := known
	stranger.Name, stranger.Holder, stranger.Record = "shop", "x", ""
	if seen := s.seen(stranger); !seen.Foreign {
		t.Errorf("%+v", seen)
	}
	gone := known
	gone.Location = s.location("nowhere.git", "prod")
	if seen := s.seen(gone); !seen.Gone {
		t.Errorf("%+v", seen)
	}
	bad := known
	bad.Location.Path = "../x"
	if _, err := s.process().RefreshClaim(context.Background(), bad); err == nil {
		t.Error("a path that cannot be one is read")
	}
}

func TestAClaimIsReleasedByWhoHasIt(t *testing.T) {
	s := newSite(t)
	web := delivery.Claim{Location: s.location("gitops.git", "prod"), Name: "web"}
	s.claimed(web, "", "a")
	for _, step := range []struct {
		holder  string
		foreign bool
		commits string
	}{{"x", true, "1"}, {"h", false, "2"}, {"h", false, "2"}} {
		foreign, err := s.process().ReleaseClaim(context.Background(), web, []string{step.holder}, "")
		if err != nil || foreign != step.foreign || s.commits("gitops.git", "prod") != step.commits {
			t.Errorf("%+v: %v, %v, %s commits", step, foreign, err, s.commits("gitops.git", "prod"))
		}
	}
	if _, err := s.process().ReleaseClaim(context.Background(), delivery.Claim{Location: s.location("nowhere.git", "prod"), Name: "web"}, []string{"h"}, ""); err != nil {
		t.Errorf("of a repository that is gone: %v", err)
	}
	if _, err := s.process().ReleaseClaim(context.Background(), delivery.Claim{Location: web.Location, Name: "aux"}, nil, ""); err == nil {
		t.Error("a claim that cannot be one is released")
	}
}

// Two owners of one location are found where one of them has ~ in its URL.
func TestTheHomeDirectoryIsASpellingOfItsPath(t *testing.T) {
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

func TestAClaimIsPlannedOnceInAConfiguration(t *testing.T) {
	s := newSite(t)
	client := s.process()
	web := delivery.Claim{Location: s.location("gitops.git", "prod"), Name: "web"}
	spelt := web
	spelt.Location.URL = "file://" + filepath.ToSlash(web.Location.URL)
	if err := client.RegisterClaim(web); err != nil {
		t.Error(err)
	}
	if err := client.RegisterClaim(spelt); !errors.Is(err, delivery.ErrDuplicateClaim) {
		t.Errorf("err = %v", err)
	}
	if err := client.RegisterClaim(delivery.Claim{Location: web.Location, Name: "api"}); err != nil {
		t.Error(err)
	}
	if holders := client.KnownClaimHolders(web); len(holders) > 0 {
		t.Errorf("%v were read", holders)
	}
}
