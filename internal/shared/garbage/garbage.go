// Package garbage bounds how much memory of a process waits for the garbage collector.
package garbage

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// Go lets as much memory wait to be collected as is in use, which doubles that of a process with hundreds of megabytes.
const (
	mostGarbage   = 192 << 20 // bytes that may wait
	usualPercent  = 100       // of what is in use that Go lets wait
	lowestPercent = 25        // the same in a process so large that it would do nothing but collect
)

// Bound lets at most 192 MiB wait to be collected, or a quarter of what is in use where that is more. GOGC in the
// environment decides instead.
func Bound() {
	if os.Getenv("GOGC") == "" {
		afterCollection(nil)
	}
}

// unused is what nothing refers to, so that its finalizer runs after each collection.
type unused struct{ _ [64]byte }

func afterCollection(*unused) {
	inUse := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(inUse)
	debug.SetGCPercent(garbagePercent(inUse[0].Value.Uint64()))
	runtime.SetFinalizer(&unused{}, afterCollection)
}

// garbagePercent is how much may wait, in percent of the bytes that are in use.
func garbagePercent(inUse uint64) int {
	return max(lowestPercent, min(usualPercent, int(mostGarbage*100/max(inUse, 1))))
}
