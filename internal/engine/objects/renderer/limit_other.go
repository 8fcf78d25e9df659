//go:build !linux || race

package renderer

// limitData does nothing: the race detector needs far more memory than the program.
func limitData(uint64) {}
