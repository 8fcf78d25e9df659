package forge

import "strings"

// TokenRights are the permissions that a kind of token needs for each operation, in Markdown. Each column adds to the ones before.
type TokenRights struct {
	Token string // kind of token
	// Read is for agents and repositories of manifests. Status is for flotilla_commit_status and feedback of agents.
	Read, Push, Request, Status string
}

// RightsTable returns the permissions for every kind as a Markdown table.
func RightsTable() string {
	var table strings.Builder
	table.WriteString("| Git host: token | read | push | pull requests | commit statuses, feedback |\n|---|---|---|---|---|\n")
	for _, kind := range Kinds() {
		for _, r := range kind.Tokens {
			table.WriteString("| " + kind.Title + ": " + strings.Join([]string{r.Token, r.Read, r.Push, r.Request, r.Status}, " | ") + " |\n")
		}
	}
	return table.String()
}
