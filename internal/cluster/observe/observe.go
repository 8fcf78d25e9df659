// Package observe says whether clusters run what was written: reports of clusters and the trees of commits in,
// verdicts and evidence out. It is pure: it makes no request, and reads no clock.
//
// A root is the object on a cluster that follows the cluster's folder in the GitOps repository, such as a Flux
// Kustomization. What it has applied is an [Applied], and what one cluster tells is a [Report].
package observe
