//go:build !linux

package processtest

import "os"

// PeakOf returns 0.
func PeakOf(*os.ProcessState) int { return 0 }
