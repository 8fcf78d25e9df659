//go:build !unix

package fleettest

import "time"

// processorTime is the clock's, where nothing better is known.
func processorTime() time.Duration { return time.Duration(time.Now().UnixNano()) }
