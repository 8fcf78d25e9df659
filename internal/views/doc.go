// Package views groups the packages that present a fleet to people and to monitoring: pages, audit reports, comparisons,
// health and metrics.
package views
