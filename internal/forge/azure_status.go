package forge

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// azureStates maps the states of Azure Repos.
var azureStates = map[string]StatusState{
	"succeeded": Success, "failed": Failure, "partiallySucceeded": Failure, "error": Error,
}

// azureTime is a time, or none: the Git host writes 0001-01-01T00:00:00 for that,
// which has no zone.
type azureTime struct{ time.Time }

// UnmarshalJSON reads anything that is not a time as none.
func (t *azureTime) UnmarshalJSON(text []byte) error {
	if t.Time.UnmarshalJSON(text) != nil {
		t.Time = time.Time{}
	}
	return nil
}

// azureGenre is what Flux' notification controller puts before each context.
const azureGenre = "fluxcd"

func (a *azureAPI) statuses(ctx context.Context, commit string, page int) (found []status, last bool, err error) {
	const top = 1000
	query := url.Values{"latestOnly": {"true"}, "top": {strconv.Itoa(top)}}
	query.Set("skip", strconv.Itoa((page-1)*top))
	var listed struct {
		Value []struct {
			ID          int64  `json:"id"`
			State       string `json:"state"`
			Description string `json:"description"`
			Context     struct {
				Name  string `json:"name"`
				Genre string `json:"genre"`
			} `json:"context"`
			Created   azureTime     `json:"creationDate"`
			Updated   azureTime     `json:"updatedDate"`
			CreatedBy azureIdentity `json:"createdBy"`
			TargetURL string        `json:"targetUrl"`
		} `json:"value"`
	}
	if err := a.call(ctx, http.MethodGet, a.repository("commits", commit, "statuses"), query, nil, &listed); err != nil {
		return nil, true, err
	}
	for _, s := range listed.Value {
		next := status{id: s.ID, Status: Status{
			Context: s.Context.Name, State: Pending, Description: s.Description, Time: s.Updated.UTC(), URL: s.TargetURL, Creator: s.CreatedBy.UniqueName,
		}}
		if s.Context.Genre != "" && s.Context.Genre != azureGenre {
			next.Context = s.Context.Genre + "/" + s.Context.Name
		}
		if state, ok := azureStates[s.State]; ok {
			next.State = state
		}
		if s.Updated.IsZero() {
			next.Time = s.Created.UTC()
		}
		found = append(found, next)
	}
	return found, len(listed.Value) < top, nil
}

func azureHook(at address, r Report) Hook {
	return Hook{
		Path:     "/" + url.PathEscape(at.owner) + "/_apis/git/repositories/" + url.PathEscape(at.name) + "/commits/" + r.Commit + "/statuses?api-version=" + azureVersion,
		Username: "flotilla",
		Fields: map[string]any{
			"context": map[string]any{"name": r.Context, "genre": "flotilla"}, "description": r.Description, "state": r.state("succeeded", "failed"),
		},
	}
}
