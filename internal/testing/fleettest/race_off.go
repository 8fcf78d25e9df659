//go:build !race

package fleettest

const withRaceDetector = false
