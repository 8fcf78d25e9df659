// Package e2e tests with real agents: Argo CD and Flux' kustomize-controller follow folders that real Terraform has written to
// a real Gitea. Most objects need no node: ConfigMaps, and Deployments without replicas. One API server stands for all clusters
// of a fleet, each with its own namespaces.
//
// Pipelines run on real runners, too: Gitea's engine for Actions, and Atlantis.
//
// `make e2e` builds the agents and runners, runs the tests and prints the times of steps.
package e2e
