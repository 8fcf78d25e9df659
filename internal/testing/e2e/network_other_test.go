//go:build !linux

package e2e_test

// inOwnNetwork runs the tests in the network of the machine: only Linux has network namespaces.
func inOwnNetwork(run func() int) int { return run() }
