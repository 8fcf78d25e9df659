package forge

import "strings"

// TokenRights are permissions by operation, in Markdown. Each adds to the ones before.
type TokenRights struct {
	Token string // kind of token
	// Read is for agents and manifests, Status for flotilla_commit_status and feedback.
	Read, Push, Request, Status string
}

// RightsTable returns a Markdown table of all kinds.
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
