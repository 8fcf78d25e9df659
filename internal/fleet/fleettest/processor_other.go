//go:build !unix

package fleettest

import "time"

// ProcessorTime is the clock's, where nothing better is known.
func ProcessorTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
