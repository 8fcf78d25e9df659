package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// fourOwners writes what four owners want of one branch, two of them at one path.
func (s *site) fourOwners(at folder.Location) []*delivery.OwnerState {
	s.t.Helper()
	var known []*delivery.OwnerState
	for _, name := range []string{"dev", "dev-eu", "stage", "prod"} {
		location := at
		location.Path, _, _ = strings.Cut(name, "-")
		trees := wanted(s.t, "1", 2, "drone-"+name, "clusters/store-"+name)
		known = append(known, s.mustApply(delivery.Desired{Owner: owner(location, name), After: trees}, "1"))
	}
	return known
}

// planNothing refreshes and plans all owners in one process, as an empty plan does.
func (s *site) planNothing(known []*delivery.OwnerState) {
	s.t.Helper()
	process := s.process()
	var group sync.WaitGroup
	for _, k := range known {
		group.Go(func() {
			seen := *k
			if err := process.Refresh(context.Background(), &seen); err != nil {
				s.t.Error(err)
				return
			}
			if !seen.Drift.IsNone() {
				s.t.Errorf("%s: drift %+v", k.Owner.Name, seen.Drift)
			}
			outlook, err := process.Plan(context.Background(), delivery.Desired{State: &seen, Owner: k.Owner, Settings: k.Settings, After: k.Trees})
			if err != nil || outlook.HasError() {
				s.t.Errorf("%s: %+v, %v", k.Owner.Name, outlook, err)
			}
		})
	}
	group.Wait()
}

func TestAnEmptyPlanOfFourOwnersLooksOnceAtAServer(t *testing.T) {
	s := newSite(t)
	s.git(".", "init", "--quiet", "--bare", "--initial-branch=main", "r.git")
	for _, setting := range []string{"http.receivepack", "uploadpack.allowFilter", "uploadpack.allowAnySHA1InWant"} {
		s.git("r.git", "config", setting, "true")
	}
	backend := &cgi.Handler{
		Path:   filepath.Join(s.git(".", "--exec-path"), "git-http-backend"),
		Env:    []string{"GIT_PROJECT_ROOT=" + s.folder, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"},
		Stderr: io.Discard,
	}
	var mu sync.Mutex
	looks, requests := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			looks++
		} else {
			requests++
		}
		mu.Unlock()
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	known := s.fourOwners(folder.Location{URL: server.URL + "/r.git", Branch: "main"})
	for _, owners := range []int{1, 4} {
		looks, requests = 0, 0
		s.planNothing(known[:owners])
		if looks != 1 || requests > 4 {
			t.Errorf("%d owners: %d looks, %d requests", owners, looks, requests)
		}
	}
}

// Some Git hosts lock an account that asks with wrong credentials again and again.
func TestCredentialsThatAreRefusedAreNotTriedForEachOwner(t *testing.T) {
	s := newSite(t)
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	process := s.process()
	for _, name := range []string{"dev", "stage", "prod"} {
		at := folder.Location{URL: server.URL + "/r.git", Branch: "main", Path: name}
		known := &delivery.OwnerState{Owner: owner(at, name), SavedState: delivery.SavedState{Trees: wanted(t, "1", 1, "drone")}}
		if err := process.Refresh(t.Context(), known); !errors.Is(err, git.ErrUnauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if asked.Load() != 1 {
		t.Errorf("the server was asked %d times", asked.Load())
	}
}

func TestAnEmptyPlanOfFourOwnersLooksOnceAtALocalRepository(t *testing.T) {
	s := &site{t, t.TempDir()} // not parallel, for the PATH
	known := s.fourOwners(s.location("r.git", "main"))
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	calls := filepath.Join(s.folder, "calls")
	script := fmt.Sprintf("#!/bin/sh\necho \"$@\" >> '%s'\nexec '%s' \"$@\"\n", calls, program)
	if err := os.WriteFile(filepath.Join(s.folder, "git"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", s.folder+string(os.PathListSeparator)+os.Getenv("PATH"))
	counts := map[int]int{}
	for _, owners := range []int{1, 4} {
		if err := os.WriteFile(calls, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		s.planNothing(known[:owners])
		text, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		counts[owners] = strings.Count(string(text), "upload-pack ")
	}
	// Every request to a local repository is a process of its own.
	if counts[4] > 4 || counts[4] != counts[1] {
		t.Errorf("git was called %v times", counts)
	}
}
