//go:build !linux

package e2e_test

// inOwnNetwork runs the tests as they are: only Linux has networks for some
// processes alone.
func inOwnNetwork(run func() int) int { return run() }
