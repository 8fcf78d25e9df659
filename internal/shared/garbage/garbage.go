// Package garbage limits the memory that waits for the garbage collector.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// By default, Go allows as much garbage as memory in use.
const (
	mostGarbage   = 192 << 20 // bytes of garbage
	usualPercent  = 100       // Go's default, in percent of the memory in use
	lowestPercent = 25        // keeps a large process from collecting all the time
)

// Bound limits garbage to 192 MiB, or to a quarter of the memory in use if that is more. GOGC wins.
func Bound() {
	if os.Getenv("GOGC") == "" {
		afterCollection(nil)
	}
}

// unused is never referenced: its finalizer runs after each collection.
type unused struct{ _ [64]byte }

func afterCollection(*unused) {
	inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(inUse)
	debug.SetGCPercent(garbagePercent(inUse[0].Value.Uint64()))
	runtime.SetFinalizer(&unused{}, afterCollection)
}

func garbagePercent(inUse uint64) int {
	return max(lowestPercent, min(usualPercent, int(mostGarbage*100/max(inUse, 1))))
}
