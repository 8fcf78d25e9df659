package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Soaked reports whether a condition that holds since a time has held for the soak time, and when that is or
// was the case. When since is after now (a clock that was set back), it has not.
func Soaked(since, now time.Time, soak time.Duration) (done bool, at time.Time) {
	at = since.Add(soak)
	return !since.IsZero() && !at.After(now), at
}

// Approvals are `<name>@<content>`, as plans print them.
type Approvals []string

// For reports whether content of a named thing is approved.
func (a Approvals) For(name, content string) bool { return slices.Contains(a, Mark(name, content)) }

// Of returns the contents of a named thing that are approved.
func (a Approvals) Of(name string) []string {
	var contents []string
	for _, approval := range a {
		if of, content, ok := strings.Cut(approval, "@"); ok && of == name {
			contents = append(contents, content)
		}
	}
	return contents
}

// Problem says what is wrong with an approval; "" where nothing is.
func Problem(approval string) string {
	if name, content, ok := strings.Cut(approval, "@"); !ok || name == "" || content == "" {
		return "must be <name>@<content>, as the plan prints it"
	}
	return ""
}

// Mark is the approval of content of a named thing.
func Mark(name, content string) string { return name + "@" + content }

// Content is the short name of some content: the same texts give the same name.
func Content(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:10]
}
