package observe_test

// fluxRoot returns a Kustomization for a folder of branch dev. It has been ready at the commit since the given time.
func fluxRoot(path, source, commit, since string) string {
	return `apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: root, namespace: flux-system, generation: 1}
spec: {path: ` + path + `, sourceRef: {kind: GitRepository, name: ` + source + `}}
status:
  observedGeneration: 1
  lastAppliedRevision: dev@sha1:` + commit + `
  lastAttemptedRevision: dev@sha1:` + commit + `
  conditions: [{type: Ready, status: "True", reason: ReconciliationSucceeded, observedGeneration: 1, lastTransitionTime: "` + since + `"}]`
}

// fluxSource returns a GitRepository with a stored revision.
func fluxSource(name, url, ref, revision, since string) string {
	return `
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: ` + name + `, namespace: flux-system, generation: 1}
spec: {url: "` + url + `", ref: ` + ref + `}
status:
  observedGeneration: 1
  artifact: {revision: "` + revision + `", lastUpdateTime: "` + since + `"}
  conditions: [{type: Ready, status: "True", reason: Succeeded, message: stored, observedGeneration: 1, lastTransitionTime: "` + since + `"}]`
}
