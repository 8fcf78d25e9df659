package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
	"time"
)

// Soaked reports whether a condition has held for the soak time, and when that ends. One that begins in the future, after a clock
// was set back, has not.
func Soaked(since, now time.Time, soak time.Duration) (done bool, at time.Time) {
	at = since.Add(soak)
	return !since.IsZero() && !at.After(now), at
}

// Approvals lists approvals: `<name>@<content>`.
type Approvals []string

// For reports whether the content of a name is approved.
func (a Approvals) For(name, content string) bool { return slices.Contains(a, Mark(name, content)) }

// Problem returns the error in an approval; "" if there is none.
func Problem(approval string) string {
	if name, content, ok := strings.Cut(approval, "@"); !ok || name == "" || content == "" {
		return "must be <name>@<content>, as the plan prints it"
	}
	return ""
}

// Mark returns the approval of the content of a name.
func Mark(name, content string) string { return name + "@" + content }

// Content returns a short hash of texts.
func Content(texts ...string) string {
	h := sha256.New()
	for _, text := range texts {
		h.Write([]byte(text))
		h.Write([]byte{0})
	}
	return hex.EncodeToString(h.Sum(nil))[:10]
}
