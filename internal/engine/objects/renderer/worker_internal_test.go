package renderer

import (
	"runtime"
	"testing"
)

func TestPeakMemoryIncludesFreedMemory(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports it")
	}
	before := peakMemory()
	if before == 0 {
		t.Fatal("there is no peak")
	}
	const added = 256 << 20
	content := make([]byte, before+added)
	for i := 0; i < len(content); i += 4096 {
		content[i] = 1
	}
	runtime.KeepAlive(content)
	content = nil
	runtime.GC()
	if after := peakMemory(); after < before+added {
		t.Errorf("the peak is %d MiB after %d MiB", after>>20, before>>20)
	}
}
