// Package observe decides whether clusters run the written content: from the clusters' reports and the trees of commits
// it derives verdicts and evidence. It makes no request and reads no clock. In its types, "" and zero times mean none
// or unknown.
//
// A root is the object on a cluster that follows the cluster's folder in the GitOps repository, such as a Flux
// Kustomization.
package observe
