// Package engine groups the packages that turn a fleet into the files of its folders: they schedule, hydrate, render and check.
// Most are pure: values in, values and reasons out. artifact/origin and pipeline also read repositories and registries.
package engine
