// Package e2e holds the tests with real agents: Argo CD and Flux'
// kustomize-controller follow the folders that real Terraform has written to a
// real Gitea. Most of what tests deploy needs no node: ConfigMaps, and Deployments
// without replicas, or with some that never come; one test has kwok's node. Charts
// come from a chart repository and an OCI registry of the test. Where the clusters
// of a fleet have folders of their own, one API stands for all of them: each
// reports what follows its folder, and the namespaces differ. What is about
// clusters that have nothing yet, or about several, has servers of its own.
//
// `make e2e` builds the agents and runs the tests. It prints how long each step
// took, most of which is the agents' own time.
package e2e
