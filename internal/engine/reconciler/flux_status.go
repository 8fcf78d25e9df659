package reconciler

import (
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// kustomization is the status of a Flux Kustomization. Without a health check, ready means only that it has
// applied its manifests.
func (o *Listing) kustomization(k *Object) verdict.Status {
	own := k.ready(func(c condition) bool {
		return c.reason == "ArtifactFailed" && (strings.HasPrefix(c.message, "Source artifact not found") ||
			strings.HasPrefix(c.message, "Source is not ready"))
	})
	own = k.tried(own)
	own.Since = k.since(own)
	own = o.linked(k, own, 0)
	if own.Verdict == verdict.Ready && !checksHealth(k) {
		return k.say(
			verdict.Unknown,
			own.Since,
			"has applied its manifests; it has neither `wait` nor health checks, so it is not known whether they are ready",
		)
	}
	return own
}

// since is since when a Kustomization has its status. Its condition Ready moves each time Flux looks, which it does at every
// interval and at every revision of the source: since when what it has applied is ready, Flux 2.7 and later say in the
// history, which has an entry for each content and outcome, with the first and the last time. Earlier versions do not.
func (o *Object) since(own verdict.Status) time.Time {
	history := o.list("status", "history")
	if len(history) == 0 || history[0].text("metadata", "revision") != o.text("status", "lastAppliedRevision") {
		return own.Since
	}
	last := history[0]
	if own.Verdict != verdict.Ready || last.text("lastReconciledStatus") != "ReconciliationSucceeded" {
		return verdict.Latest(own.Since, last.time("firstReconciled"))
	}
	since := last.time("firstReconciled")
	for _, other := range history[1:] {
		// Something else was there, or it was not ready: it is ready at the latest when Flux had looked once more.
		if ended := other.time("lastReconciled"); !ended.Before(since) {
			since = ended.Add(o.longestLook())
		}
	}
	if own.Since.Before(since) {
		return own.Since
	}
	return since
}

// longestLook is how long it takes at most until Flux has looked at a Kustomization again.
func (o *Object) longestLook() time.Duration {
	duration := func(field string, otherwise time.Duration) time.Duration {
		if given, err := time.ParseDuration(o.text("spec", field)); err == nil {
			return given
		}
		return otherwise
	}
	interval := duration("interval", 0)
	return max(interval, duration("retryInterval", interval)) + duration("timeout", interval)
}

// tried is the status of a Kustomization in the light of how often Flux has tried the present revision, which Flux 2.7
// and later say. Flux never gives up: what could not be applied once is tried again, and has failed when that fails,
// too. A health check that has failed has waited for its timeout, so it counts at once. What has failed stays so while
// it is tried again.
func (o *Object) tried(own verdict.Status) verdict.Status {
	history := o.list("status", "history")
	if own.Verdict != verdict.Failed && own.Verdict != verdict.Progressing || len(history) == 0 {
		return own
	}
	last := history[0]
	outcome, attempts := last.text("lastReconciledStatus"), int64(0)
	if revision := last.text("metadata", "revision"); revision != "" && revision == o.text("status", "lastAttemptedRevision") {
		attempts, _ = last.number("totalReconciliations")
	}
	ready, _ := o.condition("Ready")
	observed, _ := o.number("status", "observedGeneration")
	generation, _ := o.number("metadata", "generation")
	switch isLasting := attempts > 1 || outcome == "HealthCheckFailed"; {
	case attempts == 0 || outcome == "ReconciliationSucceeded" || o.flag("spec", "suspend") || o.has("metadata", "deletionTimestamp"):
	case own.Verdict == verdict.Failed && ready.reason == outcome && !isLasting:
		return o.say(verdict.Progressing, ready.changed, "could not be applied, and is tried again: %s", whyOf(ready.message, ready.reason))
	case own.Verdict == verdict.Failed && ready.reason == outcome:
		own.Since = last.time("firstReconciled")
	case own.Verdict == verdict.Progressing && ready.reason == "Progressing" && isLasting && observed == generation && o.isCurrent(ready):
		return o.say(
			verdict.Failed,
			last.time("firstReconciled"),
			"has failed %s, and is tried again: %s",
			wording.Count(int(attempts), "time", "times"),
			o.progress(ready),
		)
	}
	return own
}

func checksHealth(k *Object) bool {
	return k.flag("spec", "wait") || len(k.list("spec", "healthChecks")) > 0
}

// helmRelease is the status of a Flux HelmRelease. Its revision is the version of a chart.
func (o *Listing) helmRelease(h *Object) verdict.Status {
	own := h.ready(func(c condition) bool {
		return c.reason == "ArtifactFailed" && strings.HasSuffix(c.message, "is not ready")
	})
	own = h.retried(own)
	if history := h.list("status", "history"); len(history) > 0 {
		own.Since = verdict.Latest(own.Since, history[0].time("lastDeployed"))
	}
	own = o.linked(h, own, 0)
	if own.Verdict == verdict.Ready && (h.flag("spec", "install", "disableWait") || h.flag("spec", "upgrade", "disableWait")) {
		return h.say(verdict.Unknown, own.Since, "has installed its chart; it has `disableWait`, so it is not known whether that is ready")
	}
	return own
}

// retried is the status of a HelmRelease that could not be installed or upgraded, as long as Flux tries again. Where it
// has a number of retries, it says when it gives up: it has stalled. Where it has none, it has failed when the first
// retry has.
func (o *Object) retried(own verdict.Status) verdict.Status {
	ready, _ := o.condition("Ready")
	again, is := o.condition("Reconciling")
	stalled, gaveUp := o.condition("Stalled")
	if own.Verdict != verdict.Failed || !is || again.status != "True" || again.reason != "ProgressingWithRetry" ||
		gaveUp && stalled.status == "True" {
		return own
	}
	installs, _ := o.number("status", "installFailures")
	upgrades, _ := o.number("status", "upgradeFailures")
	if isEndless := strings.HasPrefix(again.message, "retrying after "); isEndless && installs+upgrades > 1 {
		return own
	}
	return o.say(verdict.Progressing, ready.changed, "could not be installed, and is tried again: %s", whyOf(ready.message, ready.reason))
}

// hasVersion says whether the artifact of a HelmChart is certainly of the version in its present spec.
func (o *Object) hasVersion() bool {
	version := o.text("spec", "version")
	return isExact(version) && strings.TrimPrefix(o.text("status", "artifact", "revision"), "v") == strings.TrimPrefix(version, "v") &&
		o.text("status", "observedChartName") == o.text("spec", "chart")
}

// hasRef says whether the artifact of a source is certainly of the ref in its present spec.
func (o *Object) hasRef() bool {
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

// isOCI says whether a HelmRepository has neither a status nor an artifact: charts in an OCI registry are found without an
// index.
func (o *Object) isOCI() bool { return o.text("spec", "type") == "oci" }

// commitOf is the commit in a revision of Flux, as in main@sha1:<commit>, or in the older main/<commit>; ""
// where it names none, which the version of a chart and the digest of an image do not.
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

// kustomizationRunning is what a Kustomization has applied; where it waits for health, what is healthy, too.
func (*Listing) kustomizationRunning(k *Object) Running {
	return fluxRunning(k.text("status", "lastAppliedRevision"))
}

// fluxRunning is what a revision of Flux names, as in main@sha1:<commit>, sha1:<commit> or 1.2.3@sha256:<digest>, or in the
// older main/<commit>.
func fluxRunning(revision string) Running {
	at := strings.LastIndexByte(revision, '@')
	if commit := commitOf(revision); at < 0 && commit != "" && !strings.Contains(revision, ":") {
		at = len(revision) - len(commit) - 1
	}
	return Running{Version: revision[:max(at, 0)], Revision: strings.TrimPrefix(revision[at+1:], "sha1:")}
}

// helmReleaseRunning is the release of a HelmRelease that is deployed: of several in its history, the newest. An upgrade
// that has failed leaves the former release deployed.
func (*Listing) helmReleaseRunning(h *Object) Running {
	for _, release := range h.list("status", "history") {
		if release.text("status") != "deployed" {
			continue
		}
		is := Running{
			Version: release.text("chartVersion"), Revision: release.text("ociDigest"),
			Chart: release.text("chartName"), AppVersion: release.text("appVersion"),
		}
		// Flux adds the first digits of what a chart was made from to its version: of the digest of an image, or of a commit.
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

// noFolderFlux is the message of Flux about a folder that does not exist.
const noFolderFlux = "kustomization path not found"

// kustomizationRoot is a Kustomization that follows a folder.
func (o *Listing) kustomizationRoot(k *Object, at Location, folder string) (Root, bool) {
	if clean(k.text("spec", "path")) != folder {
		return Root{}, false
	}
	source := o.source(k)
	if source == nil || source.Kind != "GitRepository" {
		return Root{Applied: o.fluxApplied(k, source)}, true
	}
	if branch := source.text("spec", "ref", "branch"); branch != "" && branch != at.Branch {
		return Root{}, false
	}
	return Root{Applied: o.fluxApplied(k, source), SameRepository: SameRepository(source.text("spec", "url"), at.URL)}, true
}

// fluxApplied is what a root Kustomization has applied. Its status names a revision as applied only when all that
// it waits for is ready, which is later than it was applied.
func (o *Listing) fluxApplied(k, source *Object) Applied {
	revision := func(field, origin string) string {
		commit := commitOf(k.text("status", field))
		if source != nil && source.Kind != "GitRepository" { // whose revisions are digests
			commit = commitOf(k.text("status", origin))
		}
		return commit
	}
	a := Applied{Root: k.ObjectName, Status: o.kustomization(k), Hindered: fluxHindered(k, source)}
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

// fluxHindered is why a root Kustomization does not keep the cluster as its branch has it. A source that cannot be read is as
// good as another for what names one version of it. A root is to get what is new.
func fluxHindered(k, source *Object) verdict.Status {
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

// fluxObject is an object in a message of Flux: its kind, its namespace if it has one, and its name.
var fluxObject = regexp.MustCompile(`\b([A-Z][A-Za-z0-9]*)/(?:([a-z0-9-]+)/)?([a-z0-9][a-z0-9.:-]*)`)

// namedIn are the objects that a message of Flux names, as in "ConfigMap/web/settings dry-run failed".
func namedIn(message string) []ObjectName {
	var names []ObjectName
	for _, found := range fluxObject.FindAllStringSubmatch(message, -1) {
		names = append(names, ObjectName{found[1], found[2], strings.TrimRight(found[3], ".:-")})
	}
	return names
}

// isExact says whether the version of a chart is one version, and not a range of them.
func isExact(version string) bool {
	version = strings.TrimPrefix(version, "v")
	core, _, _ := strings.Cut(version, "-")
	core, _, _ = strings.Cut(core, "+")
	parts := strings.Split(core, ".")
	return len(parts) == 3 && !slices.ContainsFunc(parts, func(part string) bool {
		return part == "" || strings.Trim(part, "0123456789") != ""
	})
}
