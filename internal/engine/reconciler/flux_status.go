package reconciler

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// kustomizationStatus is unknown without a health check: Ready then means only that the manifests are applied.
func kustomizationStatus(l *Listing, k *ListedObject) verdict.Status {
	own := k.ready(func(c condition) bool {
		return c.reason == "ArtifactFailed" && (strings.HasPrefix(c.message, "Source artifact not found") ||
			strings.HasPrefix(c.message, "Source is not ready"))
	})
	own = judgeAttempts(k, own)
	own.Since = readySince(k, own)
	own = l.linked(k, own, 0)
	if own.Verdict == verdict.Ready && !k.flag("spec", "wait") && len(k.list("spec", "healthChecks")) == 0 {
		const message = "has applied its manifests; it has neither `wait` nor health checks, so it is not known whether they are ready"
		return k.say(verdict.Unknown, own.Since, message)
	}
	return own
}

// readySince returns the start of a status from the history, which Flux 2.7 and later record. Ready moves at every
// interval and revision.
func readySince(k *ListedObject, own verdict.Status) time.Time {
	history := k.list("status", "history")
	if len(history) == 0 || history[0].text("metadata", "revision") != k.text("status", "lastAppliedRevision") {
		return own.Since
	}
	last := history[0]
	if own.Verdict != verdict.Ready || last.text("lastReconciledStatus") != "ReconciliationSucceeded" {
		return verdict.Latest(own.Since, last.time("firstReconciled"))
	}
	since := last.time("firstReconciled")
	for _, other := range history[1:] {
		// The content was ready at the latest one look after another state was last seen.
		if ended := other.time("lastReconciled"); !ended.Before(since) {
			since = ended.Add(longestInterval(k))
		}
	}
	if own.Since.Before(since) {
		return own.Since
	}
	return since
}

func longestInterval(k *ListedObject) time.Duration {
	duration := func(field string, otherwise time.Duration) time.Duration {
		if given, err := time.ParseDuration(k.text("spec", field)); err == nil {
			return given
		}
		return otherwise
	}
	interval := duration("interval", 0)
	return max(interval, duration("retryInterval", interval)) + duration("timeout", interval)
}

// judgeAttempts counts the attempts at the current revision, which Flux 2.7 and later record. Flux never gives up, so
// content has failed after the second failure, or after one failed health check, which has waited for its timeout.
func judgeAttempts(k *ListedObject, own verdict.Status) verdict.Status {
	history := k.list("status", "history")
	if own.Verdict != verdict.Failed && own.Verdict != verdict.Progressing || len(history) == 0 {
		return own
	}
	last := history[0]
	outcome, attempts := last.text("lastReconciledStatus"), int64(0)
	if revision := last.text("metadata", "revision"); revision != "" && revision == k.text("status", "lastAttemptedRevision") {
		attempts, _ = last.number("totalReconciliations")
	}
	ready, _ := k.condition("Ready")
	observed, _ := k.number("status", "observedGeneration")
	generation, _ := k.number("metadata", "generation")
	switch isLasting := attempts > 1 || outcome == "HealthCheckFailed"; {
	case attempts == 0 || outcome == "ReconciliationSucceeded" || k.flag("spec", "suspend") || k.has("metadata", "deletionTimestamp"):
	case own.Verdict == verdict.Failed && ready.reason == outcome && !isLasting:
		return k.say(verdict.Progressing, ready.changed, "could not be applied, and is tried again: %s", whyOf(ready.message, ready.reason))
	case own.Verdict == verdict.Failed && ready.reason == outcome:
		own.Since = last.time("firstReconciled")
	case own.Verdict == verdict.Progressing && ready.reason == "Progressing" && isLasting && observed == generation && k.isCurrent(ready):
		times := wording.Count(int(attempts), "time", "times")
		return k.say(verdict.Failed, last.time("firstReconciled"), "has failed %s, and is tried again: %s", times, k.progress(ready))
	}
	return own
}

func helmReleaseStatus(l *Listing, h *ListedObject) verdict.Status {
	own := h.ready(func(c condition) bool {
		return c.reason == "ArtifactFailed" && strings.HasSuffix(c.message, "is not ready")
	})
	own = judgeRetries(h, own)
	if history := h.list("status", "history"); len(history) > 0 {
		own.Since = verdict.Latest(own.Since, history[0].time("lastDeployed"))
	}
	own = l.linked(h, own, 0)
	if own.Verdict == verdict.Ready && (h.flag("spec", "install", "disableWait") || h.flag("spec", "upgrade", "disableWait")) {
		return h.say(verdict.Unknown, own.Since, "has installed its chart; it has `disableWait`, so it is not known whether that is ready")
	}
	return own
}

// judgeRetries considers retries of an install or upgrade. Flux reports Stalled after the last one; unlimited ones
// have failed after the first.
func judgeRetries(h *ListedObject, own verdict.Status) verdict.Status {
	ready, _ := h.condition("Ready")
	again, is := h.condition("Reconciling")
	stalled, gaveUp := h.condition("Stalled")
	if own.Verdict != verdict.Failed || !is || again.status != "True" || again.reason != "ProgressingWithRetry" ||
		gaveUp && stalled.status == "True" {
		return own
	}
	installs, _ := h.number("status", "installFailures")
	upgrades, _ := h.number("status", "upgradeFailures")
	if isEndless := strings.HasPrefix(again.message, "retrying after "); isEndless && installs+upgrades > 1 {
		return own
	}
	return h.say(verdict.Progressing, ready.changed, "could not be installed, and is tried again: %s", whyOf(ready.message, ready.reason))
}

// hasVersion reports whether the artifact of a HelmChart certainly has the version of the current spec.
func hasVersion(chart *ListedObject) bool {
	version := chart.text("spec", "version")
	return isExact(version) && strings.TrimPrefix(chart.text("status", "artifact", "revision"), "v") == strings.TrimPrefix(version, "v") &&
		chart.text("status", "observedChartName") == chart.text("spec", "chart")
}

// hasRef reports whether the artifact of a source certainly has the ref of the current spec.
func hasRef(source *ListedObject) bool {
	revision := source.text("status", "artifact", "revision")
	name, digest, _ := strings.Cut(revision, "@")
	ref := func(field string) string { return source.text("spec", "ref", field) }
	switch {
	case ref("digest") != "":
		return digest == ref("digest")
	case ref("commit") != "":
		return strings.HasSuffix(revision, ":"+ref("commit"))
	case ref("semver") != "", ref("name") != "":
		return false
	}
	wanted := cmp.Or(ref("tag"), ref("branch"))
	return wanted != "" && name == wanted
}

// isOCI reports whether a HelmRepository is for a registry, without status and artifact.
func isOCI(repository *ListedObject) bool { return repository.text("spec", "type") == "oci" }

// commitOf returns the commit in a Flux revision such as main@sha1:<commit> or the older main/<commit>.
func commitOf(revision string) string {
	if strings.Contains(revision, "sha256:") {
		return ""
	}
	revision = revision[strings.LastIndexAny(revision, ":/")+1:]
	if len(revision) != 40 || !folder.IsCommit(revision) {
		return ""
	}
	return revision
}

// kustomizationRunning also parses the revisions sha1:<commit> and 1.2.3@sha256:<digest>.
func kustomizationRunning(_ *Listing, k *ListedObject) Running {
	revision := k.text("status", "lastAppliedRevision")
	at := strings.LastIndexByte(revision, '@')
	if commit := commitOf(revision); at < 0 && commit != "" && !strings.Contains(revision, ":") {
		at = len(revision) - len(commit) - 1
	}
	return Running{Version: revision[:max(at, 0)], Revision: strings.TrimPrefix(revision[at+1:], "sha1:")}
}

// helmReleaseRunning returns the newest deployed release, which a failed upgrade does not change.
func helmReleaseRunning(_ *Listing, h *ListedObject) Running {
	for _, release := range h.list("status", "history") {
		if release.text("status") != "deployed" {
			continue
		}
		is := Running{
			Version: release.text("chartVersion"), Revision: release.text("ociDigest"),
			Chart: release.text("chartName"), AppVersion: release.text("appVersion"),
		}
		// Flux appends the first digits of an image digest or a commit to the version.
		version, source, added := strings.Cut(is.Version, "+")
		_, digest, _ := strings.Cut(is.Revision, ":")
		switch {
		case added && digest != "" && strings.HasPrefix(digest, source):
			is.Version = version
		case added && h.text("spec", "chart", "spec", "sourceRef", "kind") == "GitRepository":
			is.Version, is.Revision = version, source
		}
		return is
	}
	return Running{}
}

const noFolderFlux = "kustomization path not found"

func kustomizationRoot(l *Listing, k *ListedObject, at folder.Location, dir string) (Root, bool) {
	if clean(k.text("spec", "path")) != dir {
		return Root{}, false
	}
	source := l.source(k)
	if source == nil || source.Kind != "GitRepository" {
		return Root{Applied: kustomizationApplied(l, k)}, true
	}
	if branch := source.text("spec", "ref", "branch"); branch != "" && branch != at.Branch {
		return Root{}, false
	}
	return Root{Applied: kustomizationApplied(l, k), SameRepository: SameRepository(source.text("spec", "url"), at.URL)}, true
}

// kustomizationApplied returns the applied content. The status names a revision as applied only after everything is
// ready.
func kustomizationApplied(l *Listing, k *ListedObject) Applied {
	source := l.source(k)
	revision := func(field, origin string) string {
		commit := commitOf(k.text("status", field))
		if source != nil && source.Kind != "GitRepository" { // other sources have digests as revisions
			commit = commitOf(k.text("status", origin))
		}
		return commit
	}
	a := Applied{Root: k.ObjectName, Status: kustomizationStatus(l, k), Hindered: fluxHindered(k, source)}
	a.Commit = revision("lastAppliedRevision", "lastAppliedOriginRevision")
	attempted := revision("lastAttemptedRevision", "lastAttemptedOriginRevision")
	if source == nil || source.Kind == "GitRepository" {
		if attempted == a.Commit {
			attempted = ""
		}
	} else if a.Verdict == verdict.Ready || a.Verdict == verdict.Unknown {
		attempted = ""
	}
	ready, _ := k.condition("Ready")
	a.NoFolder = ready.status == "False" && strings.Contains(ready.message, noFolderFlux)
	if ready.status == "False" {
		a.Failing = namedIn(ready.message)
	}
	healthy, checks := k.condition("Healthy")
	tried := k.text("status", "lastAttemptedRevision")
	switch {
	case attempted == "":
	case ready.reason == "HealthCheckFailed", checks && healthy.status == "Unknown" && strings.Contains(healthy.message, tried):
		a.Commit = attempted // applied, and being checked
	default:
		a.Attempted = attempted
	}
	for _, past := range k.list("status", "history") {
		if status := past.text("lastReconciledStatus"); status != "ReconciliationSucceeded" && status != "HealthCheckFailed" {
			continue
		}
		if commit := commitOf(past.text("metadata", "revision")); commit != "" {
			a.History = append(a.History, Moment{commit, past.time("firstReconciled")})
		}
	}
	slices.SortStableFunc(a.History, func(a, b Moment) int { return a.Time.Compare(b.Time) })
	return a
}

// fluxHindered returns why a root does not keep the cluster in line with its branch. Unlike a pinned workload, it
// needs a readable source.
func fluxHindered(k, source *ListedObject) verdict.Status {
	if own := k.hindered(); own.Verdict != "" {
		return own
	}
	if source != nil {
		if source.flag("spec", "suspend") {
			return source.say(verdict.Progressing, time.Time{}, "is suspended")
		}
		if read := source.ready(nil); read.Verdict == verdict.Failed {
			return read
		}
	}
	if ready, _ := k.condition("Ready"); ready.status == "False" && k.isCurrent(ready) {
		return k.say(verdict.Progressing, ready.changed, "is not ready: %s", whyOf(ready.message, ready.reason))
	}
	return verdict.Status{}
}

var fluxObject = regexp.MustCompile(`\b([A-Z][A-Za-z0-9]*)/(?:([a-z0-9-]+)/)?([a-z0-9][a-z0-9.:-]*)`)

// namedIn returns the objects in a message such as "ConfigMap/web/settings dry-run failed".
func namedIn(message string) []ObjectName {
	var names []ObjectName
	for _, found := range fluxObject.FindAllStringSubmatch(message, -1) {
		names = append(names, ObjectName{found[1], found[2], strings.TrimRight(found[3], ".:-")})
	}
	return names
}

// isExact reports whether a chart version is no range.
func isExact(version string) bool {
	version = strings.TrimPrefix(version, "v")
	core, _, _ := strings.Cut(version, "-")
	core, _, _ = strings.Cut(core, "+")
	parts := strings.Split(core, ".")
	return len(parts) == 3 && !slices.ContainsFunc(parts, func(part string) bool {
		return part == "" || strings.Trim(part, "0123456789") != ""
	})
}
