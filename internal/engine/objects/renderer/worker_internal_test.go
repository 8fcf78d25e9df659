package renderer

import (
	"os"
	"runtime"
	"testing"
)

func TestPeakMemoryIncludesFreedMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports peak memory")
	}
	before := peakMemory()
	if before == 0 {
		t.Fatal("got no peak")
	}
	const added = 32 << 20
	touchMemory(before + added)
	runtime.GC()
	if after := peakMemory(); after < before+added {
		t.Errorf("got a peak of %d MiB after %d MiB", after>>20, before>>20)
	}
}

func touchMemory(size uint64) {
	content := make([]byte, size)
	for i := 0; i < len(content); i += os.Getpagesize() {
		content[i] = 1
	}
	runtime.KeepAlive(content)
}
