//go:build unix

package fleettest

import (
	"syscall"
	"time"
)

// ProcessorTime is the processor time that this process has used until now. Unlike the clock, it does not depend on how
// busy the machine is.
func ProcessorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
