package delivery

import (
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

func (p *Plan) checkProtection(desired Desired) {
	before, after := p.folders(), desired.After
	if desired.Unprotected {
		return
	}
	p.checkRemoval(desired.Protection, rollout.RemovalOf(before, after, desired.Fleet), desired.Clusters, func(removed []folder.Key) []string {
		return p.findCauses(desired, removed)
	})
	if p.Cleared == nil {
		return
	}
	// Each location counts on its own.
	p.checkRemoval(desired.Protection, rollout.ClearanceOf(p.Cleared, after), desired.Clusters, func([]folder.Key) []string {
		was, is := desired.State.Owner.Location, desired.Owner.Location
		return []string{fmt.Sprintf("gitops_repo is now branch %q at path %q of %s, and was branch %q at path %q of %s",
			is.Branch, is.Path, is.URL, was.Branch, was.Path, was.URL)}
	})
}

func (p *Plan) findCauses(desired Desired, removed []folder.Key) []string {
	var known []folder.Key
	for _, key := range removed {
		if p.Before.Has(key.Host, key.DeploymentTarget) {
			known = append(known, key)
		}
	}
	var lines []string
	if found := len(removed) - len(known); found > 0 {
		lines = append(
			lines,
			fmt.Sprintf(
				"%s of %q that this state does not know, and that the fleet does not want: an earlier state was lost, or another one writes there",
				wording.Count(found, "folder", "folders"),
				desired.Owner.Name,
			),
		)
	}
	if len(known) > 0 && desired.Causes != nil {
		lines = append(desired.Causes(known), lines...)
	}
	return lines
}

func (p *Plan) checkRemoval(
	protection rollout.Protection, removal rollout.Removal, clusters func(hosts []string) []string, causes func(removed []folder.Key) []string,
) {
	var names []string
	if clusters != nil {
		names = clusters(removal.Hosts())
	}
	refusal := protection.Check(removal, names)
	if refusal == nil {
		return
	}
	lines := causes(removal.Keys)
	if len(lines) == 0 {
		lines = []string{"not known: the state has no fleet to compare with"}
	}
	p.addError("protection", refusal.Summary, "%s\n\nThe cause:\n%s\n\n%s", refusal.Detail, wording.Lines(lines, mostListed), refusal.Remedy)
}
