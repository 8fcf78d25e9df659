//go:build !unix

package fleettest

import "time"

// ProcessorTime returns the wall-clock time on systems without processor time.
func ProcessorTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
