package forge

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
)

// StatusReport is a commit status to set.
type StatusReport struct {
	// Commit, Context and Description may contain placeholders of an agent.
	Commit, Context, Description string
	Key                          string // StatusKey of the context
	State                        StatusState
	Token                        string // of an agent
	Link                         string // a web page, or ""
	Page                         string // replaces an empty link if one is required

	word  string // the state in the Git host's terms
	genre string // Azure Repos only; "": the part of the context before the first slash
}

func (r StatusReport) withLink(field string, fields map[string]any) map[string]any {
	if r.Link != "" {
		fields[field] = r.Link
	}
	return fields
}

// StatusKey returns a key of forty characters, which every Git host accepts, as Flux' notification controller makes it.
func StatusKey(context string) string {
	sum := sha1.Sum([]byte(context))
	return hex.EncodeToString(sum[:])
}

// Hook is a request that sets a commit status.
type Hook struct {
	API      string // without a final slash
	Path     string // below the API, with a query
	Headers  [][2]string
	Username string // for basic authentication with the token; "" if a header contains the token
	Fields   map[string]any
}

// StatusHook returns an agent's request, without the repository's Credentials.
func StatusHook(repository HostedRepository, r StatusReport) (Hook, error) {
	at, err := locate(repository)
	if err != nil {
		return Hook{}, err
	}
	r.word, r.genre = at.kind.statuses.words[r.State], agentGenre
	hook := at.kind.hook(at, r)
	hook.API = strings.TrimSuffix(at.api.String(), "/") + hook.API
	hook.Headers = append([][2]string{{"Content-Type", "application/json"}}, hook.Headers...)
	return hook, nil
}
