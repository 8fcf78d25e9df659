package processtest

import (
	"os"
	"syscall"
)

// PeakOf returns the peak memory of an ended process in KiB.
func PeakOf(ended *os.ProcessState) int {
	usage, _ := ended.SysUsage().(*syscall.Rusage)
	if usage == nil {
		return 0
	}
	return int(usage.Maxrss)
}
