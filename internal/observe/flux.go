package observe

import (
	"path"
	"slices"
	"strings"
	"time"
)

// kustomization is the status of a Flux Kustomization. Without a health check, ready means only that it has
// applied its manifests.
func (o *objects) kustomization(k *object) Status {
	own := k.ready(func(c condition) bool {
		return c.reason == "ArtifactFailed" && (strings.HasPrefix(c.message, "Source artifact not found") ||
			strings.HasPrefix(c.message, "Source is not ready"))
	})
	source := o.source(k, "spec", "sourceRef")
	if own.Verdict == Ready && source != nil {
		revision := source.text("status", "artifact", "revision")
		if applied := k.text("status", "lastAppliedRevision"); revision != "" && applied != revision {
			return k.say(Progressing, source.time("status", "artifact", "lastUpdateTime"), "has %s, and its source has %s", applied, revision)
		}
	}
	own.Since = latest(own.Since, k.reconciled())
	own = worst(own, o.sourceStatus(source, own))
	if own.Verdict == Ready && !checksHealth(k) {
		return k.say(Unknown, own.Since, "has applied its manifests; it has neither `wait` nor health checks, so it is not known whether they are ready")
	}
	return own
}

// reconciled is when a Kustomization first applied its present revision.
func (o *object) reconciled() time.Time {
	for _, one := range o.list("status", "history") {
		if one.text("metadata", "revision") == o.text("status", "lastAppliedRevision") {
			return one.time("firstReconciled")
		}
	}
	return time.Time{}
}

func checksHealth(k *object) bool {
	return k.flag("spec", "wait") || len(k.list("spec", "healthChecks")) > 0
}

// helmRelease is the status of a Flux HelmRelease. Its revision is the version of a chart.
func (o *objects) helmRelease(h *object) Status {
	own := h.ready(func(c condition) bool {
		return c.reason == "ArtifactFailed" && strings.HasSuffix(c.message, "is not ready")
	})
	at := []string{"spec", "chartRef"}
	if !h.has(at...) {
		at = []string{"spec", "chart", "spec", "sourceRef"}
	}
	source := o.source(h, at...)
	if history := h.list("status", "history"); len(history) > 0 {
		own.Since = latest(own.Since, history[0].time("lastDeployed"))
	}
	own = worst(own, o.sourceStatus(source, own))
	if own.Verdict == Ready && (h.flag("spec", "install", "disableWait") || h.flag("spec", "upgrade", "disableWait")) {
		return h.say(Unknown, own.Since, "has installed its chart; it has `disableWait`, so it is not known whether that is ready")
	}
	return own
}

// source returns the source that an object names; nil where the cluster did not list it.
func (o *objects) source(of *object, at ...string) *object {
	namespace := of.text(append(slices.Clone(at), "namespace")...)
	if namespace == "" {
		namespace = of.Namespace
	}
	return o.byName[ObjectName{of.text(append(slices.Clone(at), "kind")...), namespace, of.text(append(slices.Clone(at), "name")...)}]
}

// sourceStatus is the effect of a source on the status of what is reconciled from it. A source that cannot be
// reached has no effect as long as it has an artifact of the wanted ref.
func (o *objects) sourceStatus(source *object, otherwise Status) Status {
	if source == nil || source.Kind == "HelmRepository" && source.text("spec", "type") == "oci" { // which has no status
		return otherwise
	}
	own := source.ready(nil)
	if own.Verdict == Failed && source.hasWanted() || own.Verdict == Ready {
		return otherwise
	}
	return own
}

// hasWanted reports whether the artifact of a source is certainly of the ref in its present spec.
func (o *object) hasWanted() bool {
	revision := o.text("status", "artifact", "revision")
	name, digest, _ := strings.Cut(revision, "@")
	ref := func(field string) string { return o.text("spec", "ref", field) }
	switch {
	case revision == "":
		return false
	case ref("digest") != "":
		return digest == ref("digest")
	case ref("commit") != "":
		return strings.HasSuffix(revision, ":"+ref("commit"))
	case ref("semver") != "", ref("name") != "":
		return false
	case ref("tag") != "":
		return name == ref("tag")
	case ref("branch") != "":
		return name == ref("branch")
	}
	return false
}

// commitOf is the commit in a revision of Flux, as in main@sha1:<commit>, or in the older main/<commit>; ""
// where it names none, which the version of a chart and the digest of an image do not.
func commitOf(revision string) string {
	if strings.Contains(revision, "sha256:") {
		return ""
	}
	revision = revision[strings.LastIndexAny(revision, ":/")+1:]
	if len(revision) != 40 || !isID(revision) {
		return ""
	}
	return revision
}

// fluxRoots finds the Kustomizations that follow a folder of the location, and their status.
func (o *objects) fluxRoots(at Location, host string) []root {
	var roots []root
	for _, k := range o.all {
		if k.Kind != "Kustomization" || k.group != groupKustomize || clean(k.text("spec", "path")) != path.Join(at.Path, host) {
			continue
		}
		source := o.source(k, "spec", "sourceRef")
		r := root{object: k, applied: o.fluxApplied(k, source)}
		if source != nil && source.Kind == "GitRepository" {
			if branch := source.text("spec", "ref", "branch"); branch != "" && branch != at.Branch {
				continue
			}
			r.sameRepository = sameRepository(source.text("spec", "url"), at.URL)
		}
		roots = append(roots, r)
	}
	return roots
}

// fluxApplied is what a root Kustomization has applied. Its status names a revision as applied only when all that
// it waits for is ready, which is later than it was applied.
func (o *objects) fluxApplied(k, source *object) Applied {
	revision := func(field, origin string) string {
		commit := commitOf(k.text("status", field))
		if source != nil && source.Kind != "GitRepository" { // whose revisions are digests
			commit = commitOf(k.text("status", origin))
		}
		return commit
	}
	a := Applied{Root: k.ObjectName, Commit: revision("lastAppliedRevision", "lastAppliedOriginRevision"), Status: o.kustomization(k)}
	attempted := revision("lastAttemptedRevision", "lastAttemptedOriginRevision")
	if source == nil || source.Kind == "GitRepository" {
		if attempted == a.Commit {
			attempted = ""
		}
	} else if a.Verdict == Ready || a.Verdict == Unknown {
		attempted = ""
	}
	ready, _ := k.condition("Ready")
	a.NoFolder = ready.status == "False" && strings.Contains(ready.message, NoFolderFlux)
	healthy, checks := k.condition("Healthy")
	tried := k.text("status", "lastAttemptedRevision")
	switch {
	case attempted == "":
	case ready.reason == "HealthCheckFailed", checks && healthy.status == "Unknown" && strings.Contains(healthy.message, tried):
		a.Commit = attempted // applied, and being checked
	default:
		a.Attempted = attempted
	}
	for _, entry := range k.list("status", "history") {
		if status := entry.text("lastReconciledStatus"); status != "ReconciliationSucceeded" && status != "HealthCheckFailed" {
			continue
		}
		if commit := commitOf(entry.text("metadata", "revision")); commit != "" {
			a.History = append(a.History, Moment{commit, entry.time("firstReconciled")})
		}
	}
	slices.SortStableFunc(a.History, func(a, b Moment) int { return a.Time.Compare(b.Time) })
	return a
}

// clean is a path in a repository without "." segments and slashes around it.
func clean(p string) string {
	p = strings.Trim(path.Clean("/"+p), "/")
	return p
}
