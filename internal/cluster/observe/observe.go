// Package observe decides whether clusters run the written content. Its input is the clusters' reports and the trees
// of commits; its output is verdicts and evidence. It is pure: it makes no request and reads no clock.
//
// A root is the object on a cluster that follows the cluster's folder in the GitOps repository, such as a Flux
// Kustomization. A [ClusterReport] has the content that each root has applied.
package observe
