package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Soaked says whether something that is so since then has been so for long enough, and when it will have
// been. A time after now is a clock that goes backwards: nothing has been so yet.
func Soaked(since, now time.Time, soak time.Duration) (done bool, at time.Time) {
	at = since.Add(soak)
	return !since.IsZero() && !at.After(now), at
}

// Approvals are `<name>@<content>`, as plans print them.
type Approvals []string

// For says whether some content of something is approved.
func (a Approvals) For(name, content string) bool { return slices.Contains(a, Mark(name, content)) }

// Of returns the contents that are approved of something.
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

// Mark is what approves some content of something.
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
