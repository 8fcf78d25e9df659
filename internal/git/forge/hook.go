package forge

import (
	"crypto/sha1"
	"encoding/hex"
	"strings"
)

// StatusReport is a commit status to be set.
type StatusReport struct {
	// Commit, Context and Description may contain the placeholders of an agent.
	Commit, Context, Description string
	Key                          string // StatusKey of the context
	State                        StatusState
	Token                        string // of an agent
	Link                         string // a web page; may be empty
	Page                         string // replaces an empty link if the Git host requires one

	word  string // the Git host's name for the state
	genre string // Azure Repos only; "": the part of the context before the first slash
}

// withLink adds the link as a field of a status, if there is one.
func (r StatusReport) withLink(field string, fields map[string]any) map[string]any {
	if r.Link != "" {
		fields[field] = r.Link
	}
	return fields
}

// StatusKey returns a key of forty characters for a context, which every Git host accepts. Flux' notification controller
// makes the same key for Git hosts that do not accept longer ones.
func StatusKey(context string) string {
	sum := sha1.Sum([]byte(context))
	return hex.EncodeToString(sum[:])
}

// Hook is the HTTP request that sets a commit status.
type Hook struct {
	API      string // the root of the API, without a slash at its end
	Path     string // below the root, with a query
	Headers  [][2]string
	Username string // for basic authentication with the token; "" if a header contains the token
	Fields   map[string]any
}

// StatusHook returns the request with which an agent sets a status. It ignores the repository's Credentials.
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
