package provider_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// standInStatuses implements Gitea's API for commit statuses, for any repository and commit. Like Gitea, it keeps every status.
type standInStatuses struct {
	mu       sync.Mutex
	received []receivedStatus // oldest first
	// refuse, if set, may answer a request and return true.
	refuse func(w http.ResponseWriter, r *http.Request) bool
}

type receivedStatus struct {
	Commit      string `json:"-"`
	ID          int    `json:"id"`
	Context     string `json:"context"`
	State       string `json:"state,omitempty"`
	Status      string `json:"status"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`
}

func (s *standInStatuses) start(t *testing.T) (url string) {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

func (s *standInStatuses) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if s.refuse != nil && s.refuse(w, r) {
		return
	}
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/api/v1/repos/"), "/")
	switch {
	case r.Method == http.MethodPost && len(path) == 4 && path[2] == "statuses":
		one := receivedStatus{Commit: path[3], ID: len(s.received) + 1}
		if err := json.NewDecoder(r.Body).Decode(&one); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		one.Status, one.State = one.State, ""
		s.received = append(s.received, one)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(one)
	case r.Method == http.MethodGet && len(path) == 5 && path[4] == "status":
		latest := map[string]receivedStatus{}
		for _, one := range s.received {
			if one.Commit == path[3] {
				latest[one.Context] = one
			}
		}
		list := []receivedStatus{}
		for _, one := range latest {
			list = append(list, one)
		}
		if r.URL.Query().Get("page") != "1" {
			list = nil
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"statuses": list})
	default:
		fmt.Fprint(w, "{}") // the repository, or a commit
	}
}

// history returns the statuses of a context, oldest first.
func (s *standInStatuses) history(context string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.received {
		if one.Context == context {
			all = append(all, strings.TrimSpace(one.Status+" "+one.Description+" "+one.TargetURL))
		}
	}
	return all
}
