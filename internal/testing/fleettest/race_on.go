//go:build race

package fleettest

const withRaceDetector = true
