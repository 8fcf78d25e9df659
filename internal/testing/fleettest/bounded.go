package fleettest

import (
	"runtime"
	"testing"
	"time"
)

// Limits for an input of less than maxInput bytes.
const (
	maxInput  = 1 << 20
	maxMemory = 64 << 20
	maxTime   = 2 * time.Second
)

// Bounded fails the test if reading less than 1 MiB takes more than 64 MiB or 2 s of processor time. It must not run in
// parallel, because all allocations count.
func Bounded(t testing.TB, input string, read func()) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := ProcessorTime()
	read()
	took := ProcessorTime() - start
	runtime.ReadMemStats(&after)
	if len(input) >= maxInput || withRaceDetector { // which takes memory and time itself
		return
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > maxMemory {
		t.Errorf("reading %d bytes takes %d MiB: %.80q", len(input), allocated>>20, input)
	}
	if took > maxTime {
		t.Errorf("reading %d bytes takes %s: %.80q", len(input), took, input)
	}
}
