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

// standInStatuses is of Gitea's API what statuses take, for any repository and any commit. It keeps each status that it was
// told, as Gitea does.
type standInStatuses struct {
	mu   sync.Mutex
	told []toldStatus // oldest first
	// refuse answers in place of it, where it is not nil and says so.
	refuse func(w http.ResponseWriter, r *http.Request) bool
}

type toldStatus struct {
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
		one := toldStatus{Commit: path[3], ID: len(s.told) + 1}
		if err := json.NewDecoder(r.Body).Decode(&one); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		one.Status, one.State = one.State, ""
		s.told = append(s.told, one)
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(one)
	case r.Method == http.MethodGet && len(path) == 5 && path[4] == "status":
		latest := map[string]toldStatus{}
		for _, one := range s.told {
			if one.Commit == path[3] {
				latest[one.Context] = one
			}
		}
		list := []toldStatus{}
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

// history is what it was told of a context, oldest first.
func (s *standInStatuses) history(context string) (all []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, one := range s.told {
		if one.Context == context {
			all = append(all, strings.TrimSpace(one.Status+" "+one.Description+" "+one.TargetURL))
		}
	}
	return all
}
