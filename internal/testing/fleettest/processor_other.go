//go:build !unix

package fleettest

import "time"

// ProcessorTime is the time of the clock, on systems where the processor time is not read.
func ProcessorTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
