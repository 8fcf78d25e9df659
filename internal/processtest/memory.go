package processtest

import (
	"fmt"
	"os"
	"strings"
)

// PeakMemory is how much memory of this process was resident at once, at most, in
// KiB, since it began or [ForgetPeakMemory] was called; 0 where the kernel does
// not tell.
func PeakMemory() int {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0
	}
	kib := 0
	if _, peak, ok := strings.Cut(string(status), "VmHWM:"); ok {
		_, _ = fmt.Sscan(peak, &kib)
	}
	return kib
}

// ForgetPeakMemory forgets the peak so far, where the kernel can.
func ForgetPeakMemory() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200)
}

// ReportPeakMemory reports the peak as a figure of a benchmark, where the kernel
// tells it.
func ReportPeakMemory(benchmark interface{ ReportMetric(n float64, unit string) }) {
	if kib := PeakMemory(); kib > 0 {
		benchmark.ReportMetric(float64(kib)/1024, "peak-MiB")
	}
}
