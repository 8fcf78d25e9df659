package reconciler

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// fleetCommitLabel is the label of a Bundle with the commit that it was made of.
const fleetCommitLabel = "fleet.cattle.io/commit"

// gitRepo is the status of a Rancher Fleet GitRepo or HelmOp and of the Bundles that were made of it. A GitRepo
// names a commit before its Bundles have it, and a Bundle is ready before its BundleDeployments are.
func (o *Listing) gitRepo(g *Object) verdict.Status {
	own := g.ready(func(condition) bool { return !g.isRefused() })
	for _, name := range []string{"Accepted", "GitPolling"} {
		if c, ok := g.condition(name); ok && c.status == "False" && g.isCurrent(c) {
			return g.say(verdict.Failed, c.changed, "cannot be read: %s", whyOf(c.message, c.reason))
		}
	}
	if own.Verdict == verdict.Failed || g.text("metadata", "deletionTimestamp") != "" {
		return own
	}
	if reason, unlisted := o.unlisted["Bundle"]; unlisted {
		return verdict.Worst(own, g.say(verdict.Unknown, own.Since, "is deployed by Bundles, which cannot be read: %s", reason))
	}
	bundles := 0
	for _, b := range o.madeBy(g) {
		bundles++
		commit, has := g.text("status", "commit"), b.Labels()[fleetCommitLabel]
		if commit != "" && has != "" && commit != has {
			own = verdict.Worst(own, b.say(verdict.Progressing, own.Since, "has commit %s, and its GitRepo has %s", has, commit))
			continue
		}
		if g.Kind == "HelmOp" && !b.isOf(g) {
			own = verdict.Worst(own, b.say(verdict.Progressing, own.Since, "does not have the chart of its HelmOp yet, or not with its values"))
			continue
		}
		own = verdict.Worst(own, o.bundle(b))
	}
	if bundles == 0 && own.Verdict == verdict.Ready {
		return g.say(verdict.Progressing, own.Since, "has no Bundles yet")
	}
	return own
}

// isOf says whether a Bundle has the chart and the values that its HelmOp has. A HelmOp does not say which generation of
// it that is. Its version may be a range, and then its status has the version.
func (o *Object) isOf(helmOp *Object) bool {
	chart := func(of *Object) any {
		fields := maps.Clone(of.object("spec", "helm"))
		delete(fields, "version")
		return withoutDefaults(map[string]any(fields))
	}
	version, wanted := o.text("spec", "helm", "version"), helmOp.text("spec", "helm", "version")
	if !isExact(wanted) {
		wanted = helmOp.text("status", "version")
	}
	return sameValue(chart(o), chart(helmOp)) && (wanted == "" || version == wanted)
}

// bundle is the status of a Bundle and its BundleDeployments.
func (o *Listing) bundle(b *Object) verdict.Status {
	own := b.ready(func(condition) bool { return !b.isRefused() })
	ready, _ := b.number("status", "summary", "ready")
	desired, known := b.number("status", "summary", "desiredReady")
	if own.Verdict == verdict.Ready && known && ready < desired {
		own = b.say(verdict.Progressing, own.Since, "is ready on %d of %d clusters", ready, desired)
	}
	if reason, unlisted := o.unlisted["BundleDeployment"]; unlisted {
		own = verdict.Worst(own, b.say(verdict.Unknown, own.Since, "is deployed by a BundleDeployment, which cannot be read: %s", reason))
	}
	for _, d := range o.madeBy(b) {
		own = verdict.Worst(own, o.bundleDeployment(d))
	}
	return own
}

// isRefused reports whether a Bundle, or one of a GitRepo, could not be applied somewhere.
func (o *Object) isRefused() bool {
	refused, _ := o.number("status", "summary", "errApplied")
	return refused > 0
}

// bundleDeployment is the status of a Bundle on one cluster.
func (o *Listing) bundleDeployment(d *Object) verdict.Status {
	deployed, known := d.condition("Deployed")
	if known && deployed.status == "False" {
		return d.say(verdict.Failed, deployed.changed, "cannot be deployed: %s", whyOf(deployed.message, deployed.reason))
	}
	wanted := d.text("spec", "deploymentID")
	if applied := d.text("status", "appliedDeploymentID"); wanted == "" || applied != wanted {
		return d.say(verdict.Progressing, deployed.changed, "has not deployed its present content yet")
	}
	own := d.ready(func(condition) bool { return true })
	if own.Verdict != verdict.Ready {
		return own
	}
	if value, is := d.value("status", "nonModified").(bool); is && !value {
		return d.say(verdict.Progressing, own.Since, "has objects that were changed on the cluster")
	}
	if !d.flag("status", "ready") {
		return d.say(verdict.Progressing, own.Since, "is not ready yet")
	}
	return own
}

// gitRepoRoot is a GitRepo that follows a folder.
func (o *Listing) gitRepoRoot(g *Object, at Location, folder string) (Root, bool) {
	paths, _ := g.value("spec", "paths").([]any)
	branch := g.text("spec", "branch")
	if branch != "" && branch != at.Branch || !slices.ContainsFunc(paths, func(p any) bool {
		text, ok := p.(string)
		return ok && clean(text) == folder
	}) {
		return Root{}, false
	}
	return Root{Applied: o.fleetApplied(g), SameRepository: SameRepository(g.text("spec", "repo"), at.URL)}, true
}

// fleetApplied is what a root GitRepo has applied. It names the commit that it has read; what it has applied
// is what its Bundles are deployed of.
func (o *Listing) fleetApplied(g *Object) Applied {
	is := Applied{Root: g.ObjectName, Status: o.gitRepo(g), Hindered: g.hindered()}
	read := g.text("status", "commit")
	if !folder.IsCommit(read) {
		return is
	}
	for _, b := range o.madeBy(g) {
		if b.Labels()[fleetCommitLabel] != read || !o.isDeployed(b) {
			is.Attempted = read
			return is
		}
	}
	is.Commit = read
	return is
}

// isDeployed says whether the BundleDeployments of a Bundle have applied what it has now.
func (o *Listing) isDeployed(b *Object) bool {
	return b.isCurrent(condition{}) && !slices.ContainsFunc(o.madeBy(b), func(d *Object) bool {
		return d.text("status", "appliedDeploymentID") != d.text("spec", "deploymentID")
	})
}

// gitRepoRunning is what a GitRepo has deployed. A Bundle has its content before its BundleDeployments do, and what these
// had before is named nowhere: so nothing is known while a commit arrives.
func (o *Listing) gitRepoRunning(g *Object) Running {
	is := Running{Revision: g.text("status", "commit")}
	if ref := cmp.Or(g.text("spec", "revision"), g.text("spec", "branch")); ref != is.Revision && g.isCurrent(condition{}) {
		is.Version = ref
	}
	bundles := o.madeBy(g)
	if is.Revision == "" || !o.showsDeployments(bundles) || slices.ContainsFunc(bundles, func(b *Object) bool {
		return b.Labels()[fleetCommitLabel] != is.Revision || !o.isDeployed(b)
	}) {
		return Running{}
	}
	return is
}

// helmOpRunning is what a HelmOp has deployed.
func (o *Listing) helmOpRunning(h *Object) Running {
	var all []Running
	bundles := o.madeBy(h)
	for _, b := range bundles {
		if !o.isDeployed(b) {
			return Running{}
		}
		// A chart in an OCI registry is named by its repository.
		chart := cmp.Or(b.text("spec", "helm", "chart"), b.text("spec", "helm", "repo"))
		all = append(all, Running{Version: b.text("spec", "helm", "version"), Chart: chart[strings.LastIndexByte(chart, '/')+1:]})
	}
	if !o.showsDeployments(bundles) {
		return Running{}
	}
	return Together(all...)
}

// showsDeployments says whether each of some Bundles, at least one, has BundleDeployments that were listed.
func (o *Listing) showsDeployments(bundles []*Object) bool {
	return len(bundles) > 0 && !slices.ContainsFunc(bundles, func(b *Object) bool { return len(o.madeBy(b)) == 0 })
}
