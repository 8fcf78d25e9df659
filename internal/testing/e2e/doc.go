// Package e2e has the tests with real agents: Argo CD and Flux' kustomize-controller follow folders that real Terraform has
// written to a real Gitea. Most tests deploy objects that need no node: ConfigMaps, and Deployments without ready replicas; one
// test has kwok's node. Charts come from a chart repository and an OCI registry of the test. One API stands for all clusters of a
// fleet with folders of their own: each reports the objects from its folder, and the namespaces differ. Tests about empty or
// several clusters have their own servers.
//
// `make e2e` builds the agents and runs the tests. It prints the time of each step, most of which the agents take.
package e2e
