package artifacts

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/origin"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// pinned is a deployment target with its pin.
type pinned struct {
	artifact.Entry
	kept        bool
	newest      string
	err         error
	republished string       // the new content of a kept version; "" if it is the same
	before      *deployedPin // nil without a deployed pin
}

type result map[string]*pinned

// deployedPin is the pin in a record.
type deployedPin struct {
	artifact.Entry
	changed time.Time
}

// readDeployed returns the last written pins by deployment target.
func readDeployed(ctx context.Context, c *connection.Connection, w wanted, diagnostics *diag.Diagnostics) map[string]deployedPin {
	found, err := c.Delivery.ReadInventory(ctx, w.at, gitops.InventoryFilter{Owner: w.of})
	if err != nil {
		// Before the first apply there may be no repository.
		repository.AddError(ctx, diagnostics, err, errors.Is(err, git.ErrNotFound))
		return nil
	}
	warnOfMissingOwner(w, found.Owners, diagnostics)
	unsigned := map[string]bool{}
	for _, record := range found.Unsigned {
		unsigned[record.Record] = true
	}
	deployed := map[string]deployedPin{}
	for i := range found.Assignments {
		a := &found.Assignments[i]
		if a.Owner.Path != strings.Trim(w.at.Path, "/") || a.Manifests == nil || a.Manifests.Pin == (folder.Pin{}) ||
			unsigned[a.Owner.RecordPath(a.Host)] ||
			artifact.CheckPin(a.Manifests.Storage, a.Manifests.Pin) != nil {
			continue
		}
		if before, ok := deployed[a.DeploymentTarget]; ok && !a.Changed.After(before.changed) {
			continue
		}
		request := *a.Manifests
		request.Pin = folder.Pin{}
		deployed[a.DeploymentTarget] = deployedPin{artifact.Entry{Manifests: request, Pin: a.Manifests.Pin}, a.Changed}
	}
	return deployed
}

// warnOfMissingOwner warns if an assignment has no records, as before its first apply: a misspelt name or location would turn
// the deployed pins off.
func warnOfMissingOwner(w wanted, owners []gitops.Owner, diagnostics *diag.Diagnostics) {
	own := strings.Trim(w.at.Path, "/")
	var names []string
	for _, owner := range owners {
		if owner.Path == own {
			names = append(names, owner.Name)
		}
	}
	if slices.Contains(names, w.of) {
		return
	}
	diagnostics.AddAttributeWarning(path.Root("name"), "No pins are deployed", fmt.Sprintf(
		"Branch %q has no records of an assignment %q at path %q, so every pin is resolved, and neither update nor keep_unreachable keeps one. "+
			"Before the first apply of the assignment that is expected; otherwise correct name or gitops_repo%s",
		w.at.Branch, w.of, own, cmp.Or(wording.DidYouMean(w.of, names), ".")))
}

// maxAsked bounds the parallel requests.
const maxAsked = 16

// resolve finds the pin of every deployment target, or an error about it.
func resolve(ctx context.Context, client *origin.Resolver, w wanted, deployed map[string]deployedPin) result {
	names := slices.Sorted(maps.Keys(w.manifests))
	all := make([]*pinned, len(names))
	parallel.EachAtMost(len(names), maxAsked, func(i int) {
		one := &pinned{Entry: artifact.Entry{Manifests: w.manifests[names[i]]}}
		all[i] = one
		if before, ok := deployed[names[i]]; ok && before.IsFor(one.Manifests) {
			one.before = &before
		}
		if one.before != nil && !w.mayUpdate(names[i]) {
			one.Entry, one.kept = one.before.Entry, true
			one.republished = findRepublished(ctx, client, one.before.Entry, w.sources[names[i]])
		} else if one.Pin, one.err = client.Resolve(ctx, one.Manifests, w.sources[names[i]]); one.err != nil {
			return
		}
		var err error
		one.newest, err = client.Newest(ctx, one.Manifests, w.sources[names[i]]) // a registry need not list tags
		if one.kept && errors.Is(err, git.ErrUnreachable) {
			one.newest = one.deployedVersion()
		}
	})
	found := result{}
	for i, name := range names {
		found[name] = all[i]
	}
	return found
}

// deployedVersion replaces the newest version while a repository does not answer, so that plans can read newest.
func (p *pinned) deployedVersion() string {
	for _, version := range []string{p.Pin.Version, p.Manifests.Tag} {
		if artifact.IsVersion(version) {
			return version
		}
	}
	return ""
}

// findRepublished finds kept versions with changed content. A repository that does not answer has the same content.
func findRepublished(ctx context.Context, client *origin.Resolver, deployed artifact.Entry, sources []string) string {
	before, now := deployed.Manifests, deployed.Manifests
	if before.Pin = deployed.Pin; !artifact.IsMovable(before) {
		return ""
	}
	if now.Storage != "git" && now.Tag == "" {
		now.Version = deployed.Pin.Version
	}
	pin, err := client.Resolve(ctx, now, sources)
	if err != nil {
		return ""
	}
	now.Pin = pin
	return artifact.DescribeRepublished(before, now)
}

// warnOfRepublished warns once of each such version.
func (r result) warnOfRepublished(diagnostics *diag.Diagnostics) {
	targets := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(r)) {
		if text := r[name].republished; text != "" {
			targets[text] = append(targets[text], name)
		}
	}
	for _, text := range slices.Sorted(maps.Keys(targets)) {
		diagnostics.AddAttributeWarning(path.Root("update"), "Version was published again", tfvalue.Sentence(text)+
			" update does not allow these pins to change, so the fleet keeps the content that is deployed. An agent that fetches by the "+
			"version alone, as from a chart repository, may get the new content all the same; render = \"objects\" prevents that. To accept "+
			"the new content, add the deployment targets to update."+
			"\n\nDeployment targets: "+wording.List(wording.Quoted(targets[text]), wording.Named)+".")
	}
}

// report adds each error once, with its deployment targets, or with keep none while they keep their pin.
func (r result) report(ctx context.Context, keep bool, diagnostics *diag.Diagnostics) {
	type kind struct {
		text       string
		kept, away bool
	}
	targets := map[kind][]string{}
	var first error
	for _, name := range slices.Sorted(maps.Keys(r)) {
		one := r[name]
		if one.err == nil {
			continue
		}
		if keep && one.before != nil && errors.Is(one.err, git.ErrUnreachable) {
			one.Entry, one.kept = one.before.Entry, true
			one.newest = one.deployedVersion()
		} else if first == nil {
			first = one.err
		}
		of := kind{one.err.Error(), one.kept, errors.Is(one.err, git.ErrUnreachable)}
		targets[of] = append(targets[of], name)
	}
	if first != nil && timeouts.AddEndedOf(ctx, diagnostics, first, "workloads", "Nothing was written.") {
		return
	}
	kinds := slices.SortedFunc(maps.Keys(targets), func(a, b kind) int { return strings.Compare(a.text, b.text) })
	for i, of := range kinds {
		if i == fleetvalue.MaxDiagnostics {
			tfvalue.AddErrorf(diagnostics, path.Root("workloads"), "Artifacts cannot be resolved",
				"%d repositories more have errors.", len(kinds)-i)
			return
		}
		detail := tfvalue.Sentence(of.text) + "\n\nDeployment targets: " + wording.List(wording.Quoted(targets[of]), wording.Named) + "."
		if of.kept {
			diagnostics.AddAttributeWarning(path.Root("workloads"), "Pins stay as they are deployed", detail)
			continue
		}
		if of.away && !keep {
			detail += " To keep the pins that are deployed, set keep_unreachable."
		}
		diagnostics.AddAttributeError(path.Root("workloads"), "Artifacts cannot be resolved", detail)
	}
}
