package forge

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

var azureStates = map[string]StatusState{
	"succeeded": Success, "failed": Failure, "partiallySucceeded": Failure, "error": Error,
}

var azureWords = map[StatusState]string{Success: "succeeded", Failure: "failed", Error: "error", Pending: "pending"}

// azureTime reads 0001-01-01T00:00:00, without a zone, as the zero time.
type azureTime struct{ time.Time }

// UnmarshalJSON also reads invalid text as the zero time.
func (t *azureTime) UnmarshalJSON(text []byte) error {
	if t.Time.UnmarshalJSON(text) != nil {
		t.Time = time.Time{}
	}
	return nil
}

// agentGenre is for a Hook.
const agentGenre = "flotilla"

// azureGenre is the genre of Flux' notification controller.
const azureGenre = "fluxcd"

func (a *azureAPI) listStatuses(ctx context.Context, commit string, page int) (found []status, last bool, err error) {
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
	if err := a.call(ctx, http.MethodGet, withQuery(a.at.resource("commits", commit, "statuses"), query), nil, &listed); err != nil {
		return nil, true, err
	}
	for _, s := range listed.Value {
		next := status{id: s.ID, Status: Status{
			Context: s.Context.Name, State: Pending, Description: s.Description,
			Time: s.Updated.UTC(), URL: s.TargetURL, Creator: s.CreatedBy.UniqueName,
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

func azureHook(at address, r StatusReport) Hook {
	context := map[string]any{"name": r.Context, "genre": r.genre}
	if r.genre == "" {
		context = azureContext(r.Context)
	}
	return Hook{
		Path: at.path() + "/commits/" + r.Commit + "/statuses?api-version=" + azureVersion, Username: "flotilla",
		Fields: r.withLink("targetUrl", map[string]any{"context": context, "description": r.Description, "state": r.word}),
	}
}

// azureContext splits a context at its first slash.
func azureContext(context string) map[string]any {
	genre, name, ok := strings.Cut(context, "/")
	if !ok || genre == "" || name == "" || genre == azureGenre {
		return map[string]any{"name": context}
	}
	return map[string]any{"name": name, "genre": genre}
}
