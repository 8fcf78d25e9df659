package processtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// PeakMemory returns the peak of resident memory in KiB, since the start or [ForgetPeakMemory]; 0 if unknown.
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

// ForgetPeakMemory resets the peak, if the kernel can.
func ForgetPeakMemory() {
	_ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0o200)
}

// ReportPeakMemory reports the peak as a figure of a benchmark.
func ReportPeakMemory(benchmark interface{ ReportMetric(n float64, unit string) }) {
	if kib := PeakMemory(); kib > 0 {
		benchmark.ReportMetric(float64(kib)/1024, "peak-MiB")
	}
}

// Usage is processor time, and the sum of resident memory at its peak, in KiB.
type Usage struct {
	Processors time.Duration
	Peak       int
}

// Children returns the usage of the running children, if known.
func Children() Usage {
	var all Usage
	found, _ := filepath.Glob("/proc/[0-9]*")
	for _, folder := range found {
		status, err := os.ReadFile(filepath.Join(folder, "status"))
		if err != nil || !bytes.Contains(status, fmt.Appendf(nil, "\nPPid:\t%d\n", os.Getpid())) {
			continue
		}
		if _, peak, ok := strings.Cut(string(status), "VmHWM:"); ok {
			kib := 0
			_, _ = fmt.Sscan(peak, &kib)
			all.Peak += kib
		}
		stat, _ := os.ReadFile(filepath.Join(folder, "stat"))
		if at := bytes.LastIndexByte(stat, ')'); at >= 0 { // after the name
			if fields := strings.Fields(string(stat[at+1:])); len(fields) > 12 {
				user, system := 0, 0
				_, _ = fmt.Sscan(fields[11]+" "+fields[12], &user, &system)
				all.Processors += time.Duration(user+system) * 10 * time.Millisecond
			}
		}
	}
	return all
}
