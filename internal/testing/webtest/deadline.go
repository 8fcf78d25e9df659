package webtest

import (
	"testing"
	"time"
)

// GrowDeadline calls do with longer deadlines until it returns nil, and fails the test with its last error. Tests with one
// silent server use it, because a busy machine delays the answers of the other servers.
func GrowDeadline(t testing.TB, do func(deadline time.Duration) error) {
	t.Helper()
	var err error
	for deadline := 300 * time.Millisecond; deadline < 20*time.Second; deadline *= 4 {
		if err = do(deadline); err == nil {
			return
		}
	}
	t.Error(err)
}
