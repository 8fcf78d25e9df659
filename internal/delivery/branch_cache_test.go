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

// applyFourOwners applies four owners of one branch. Two of them share a path.
func (s *site) applyFourOwners(location folder.Location) []*delivery.OwnerState {
	s.t.Helper()
	var states []*delivery.OwnerState
	for _, name := range []string{"dev", "dev-eu", "stage", "prod"} {
		location.Path, _, _ = strings.Cut(name, "-")
		trees := wantedTrees(s.t, "1", 2, "drone-"+name, "clusters/store-"+name)
		states = append(states, s.mustApply(delivery.Desired{Owner: owner(location, name), After: trees}, "1"))
	}
	return states
}

// planWithoutChanges refreshes and plans all owners in one process, as an empty plan does.
func (s *site) planWithoutChanges(states []*delivery.OwnerState) {
	s.t.Helper()
	service := s.newService()
	var group sync.WaitGroup
	for _, state := range states {
		group.Go(func() {
			refreshed := *state
			if err := service.Refresh(context.Background(), &refreshed); err != nil {
				s.t.Error(err)
				return
			}
			if !refreshed.Drift.IsNone() {
				s.t.Errorf("%s: drift %+v", state.Owner.Name, refreshed.Drift)
			}
			outlook, err := service.Plan(context.Background(), delivery.Desired{State: &refreshed, Owner: state.Owner, Settings: state.Settings, After: state.Trees})
			if err != nil || outlook.HasError() {
				s.t.Errorf("%s: %+v, %v", state.Owner.Name, outlook, err)
			}
		})
	}
	group.Wait()
}

func TestAnEmptyPlanOfFourOwnersReadsAServerOnce(t *testing.T) {
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
	branchReads, requests := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if strings.HasSuffix(r.URL.Path, "/info/refs") {
			branchReads++
		} else {
			requests++
		}
		mu.Unlock()
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	states := s.applyFourOwners(folder.Location{URL: server.URL + "/r.git", Branch: "main"})
	for _, owners := range []int{1, 4} {
		branchReads, requests = 0, 0
		s.planWithoutChanges(states[:owners])
		if branchReads != 1 || requests > 4 {
			t.Errorf("%d owners: got %d reads of the branch, %d other requests", owners, branchReads, requests)
		}
	}
}

// Some Git hosts lock an account after repeated attempts with wrong credentials.
func TestRefusedCredentialsAreTriedOnce(t *testing.T) {
	s := newSite(t)
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		http.Error(w, "no", http.StatusUnauthorized)
	}))
	t.Cleanup(server.Close)
	service := s.newService()
	for _, name := range []string{"dev", "stage", "prod"} {
		location := folder.Location{URL: server.URL + "/r.git", Branch: "main", Path: name}
		state := &delivery.OwnerState{Owner: owner(location, name), SavedState: delivery.SavedState{Trees: wantedTrees(t, "1", 1, "drone")}}
		if err := service.Refresh(t.Context(), state); !errors.Is(err, git.ErrUnauthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if requests.Load() != 1 {
		t.Errorf("got %d requests, want 1", requests.Load())
	}
}

func TestAnEmptyPlanOfFourOwnersReadsALocalRepositoryOnce(t *testing.T) {
	s := &site{t, t.TempDir()} // not parallel, since it sets PATH
	states := s.applyFourOwners(s.location("r.git", "main"))
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
		s.planWithoutChanges(states[:owners])
		text, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		counts[owners] = strings.Count(string(text), "upload-pack ")
	}
	// Each request to a local repository starts a process.
	if counts[4] > 4 || counts[4] != counts[1] {
		t.Errorf("got %v calls of git by number of owners", counts)
	}
}
