//go:build !linux || race

package renderer

// limitData does nothing: only Linux has such a limit, and the race detector needs far more memory than the program.
func limitData(uint64) {}
