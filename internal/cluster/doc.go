// Package cluster groups the packages that talk to Kubernetes clusters: they install agents, read the reports of agents,
// collect facts and measurements, and decide by them which changes have arrived.
package cluster
