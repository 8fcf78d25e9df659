//go:build !race

package fleettest

// withRaceDetector says that this is a build of the race detector.
const withRaceDetector = false
