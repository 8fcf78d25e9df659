package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/gitops"
)

const (
	// defaultMaxRemovedPercent is the limit where protection sets none.
	defaultMaxRemovedPercent = 50
	// alwaysRemovable is how many assignments no percentage but 0 keeps: half of a small fleet is no
	// mass deletion.
	alwaysRemovable = 10
)

// protection is what a plan may remove.
type protection struct {
	maxRemoved        *int64 // nil: no limit of its own
	maxRemovedPercent *int64 // nil: the default
	allowEmpty        bool
}

// decodeProtection reads the attribute protection, strictly.
func decodeProtection(value types.Dynamic, diagnostics *diag.Diagnostics) protection {
	limits := protection{}
	object := settings("protection", value, []string{"max_removed", "max_removed_percent", "allow_empty"}, diagnostics)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		var fits bool
		switch key {
		case "max_removed":
			limits.maxRemoved, fits = limit(object[key], 1<<31)
		case "max_removed_percent":
			limits.maxRemovedPercent, fits = limit(object[key], 100)
		case "allow_empty":
			limits.allowEmpty, fits = object[key].(bool)
		}
		if !fits {
			diagnostics.AddAttributeError(path.Root("protection"), "Invalid protection", fmt.Sprintf("%s does not take this value: "+
				"max_removed is a whole number, max_removed_percent one from 0 to 100, allow_empty true or false.", key))
		}
	}
	return limits
}

func limit(value any, most int64) (*int64, bool) {
	number, ok := value.(json.Number)
	if !ok {
		return nil, false
	}
	parsed, err := number.Int64()
	if err != nil || parsed < 0 || parsed > most {
		return nil, false
	}
	return &parsed, true
}

// removal is what a plan takes away.
type removal struct {
	keys  []string // "<host>/<deployment target>", in order
	hosts map[string]bool
	total int // assignments that are deployed
	left  int // assignments that are wanted
}

func removalOf(before, wanted gitops.Deployed) removal {
	r := removal{hosts: map[string]bool{}}
	for _, host := range slices.Sorted(maps.Keys(before)) {
		for _, target := range slices.Sorted(maps.Keys(before[host])) {
			r.total++
			if _, stays := wanted[host][target]; !stays {
				r.keys = append(r.keys, host+"/"+target)
				r.hosts[host] = true
			}
		}
	}
	for _, targets := range wanted {
		r.left += len(targets)
	}
	return r
}

// where counts the hosts and, as far as the model knows them, their clusters.
func (r removal) where(model *assignmentModel) string {
	text := count(len(r.hosts), "host", "hosts")
	clusters := map[string]bool{}
	for host := range r.hosts {
		if cluster, ok := strings.CutPrefix(host, "clusters/"); ok {
			clusters[cluster] = true
		}
	}
	known, _ := model.Fleet.Attributes()["model"].(types.String)
	if parsed, err := fleet.ParseModel(known.ValueString()); err == nil {
		for _, cluster := range parsed.Clusters {
			if r.hosts[cluster.ClusterType] {
				clusters[cluster.Name] = true
			}
		}
	}
	if len(clusters) > 0 {
		text += " with " + count(len(clusters), "cluster", "clusters")
	}
	return text
}

// check fails a plan that removes more than is allowed. wanted is nil for a destroy; model is what was
// deployed.
func (p protection) check(before, wanted gitops.Deployed, model *assignmentModel, diagnostics *diag.Diagnostics) {
	removed := removalOf(before, wanted)
	if removed.left == 0 && removed.total > 0 && wanted != nil && !p.allowEmpty {
		diagnostics.AddAttributeError(path.Root("protection"), "Nothing would be left", fmt.Sprintf(
			"%s deployed on %s, and this plan would remove all of them: %s.\n\nIf that is meant, set protection = { %s }.",
			count(removed.total, "assignment is", "assignments are"), removed.where(model), describe(removed.keys, 10),
			strings.Join(append([]string{"allow_empty = true"}, p.raised(removed)...), ", ")))
		return
	}
	reason := p.exceeded(len(removed.keys), removed.total)
	if reason == "" {
		return
	}
	then := ""
	if wanted == nil {
		then = ", apply that, and destroy then"
	}
	diagnostics.AddAttributeError(path.Root("protection"), "Mass deletion", fmt.Sprintf(
		"This plan would remove %d of %s on %s, %s: %s.\n\nIf that is meant, set protection = { %s }%s.",
		len(removed.keys), count(removed.total, "assignment", "assignments"), removed.where(model), reason, describe(removed.keys, 10),
		strings.Join(p.raised(removed), ", "), then))
}

// raised are the limits with which the removal is allowed; none when it is.
func (p protection) raised(removed removal) []string {
	if p.exceeded(len(removed.keys), removed.total) == "" {
		return nil
	}
	var limits []string
	if p.maxRemoved != nil || p.maxRemovedPercent == nil {
		limits = append(limits, fmt.Sprintf("max_removed = %d", len(removed.keys)))
	}
	if p.maxRemovedPercent != nil {
		limits = append(limits, fmt.Sprintf("max_removed_percent = %d", (len(removed.keys)*100+removed.total-1)/removed.total))
	}
	return limits
}

func count(number int, one, many string) string {
	if number == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", number, many)
}

// exceeded says which limit is exceeded, or "".
func (p protection) exceeded(removed, total int) string {
	switch {
	case removed == 0:
		return ""
	case p.maxRemoved != nil && int64(removed) > *p.maxRemoved:
		return fmt.Sprintf("more than max_removed = %d", *p.maxRemoved)
	case p.maxRemovedPercent != nil && (removed > alwaysRemovable || *p.maxRemovedPercent == 0) &&
		int64(removed)*100 > int64(total)*(*p.maxRemovedPercent):
		return fmt.Sprintf("more than max_removed_percent = %d", *p.maxRemovedPercent)
	case p.maxRemoved == nil && p.maxRemovedPercent == nil && removed > alwaysRemovable && removed*100 > total*defaultMaxRemovedPercent:
		return fmt.Sprintf("more than the default of %d %%", defaultMaxRemovedPercent)
	}
	return ""
}

// planDestroy holds a destroy to the limits that the state has, unless everything stays.
func (m *assignmentModel) planDestroy(ctx context.Context, diagnostics *diag.Diagnostics) {
	deployed := m.deployment(ctx, diagnostics)
	if !m.keeps() {
		decodeProtection(m.Protection, diagnostics).check(deployed, nil, m, diagnostics)
		return
	}
	if kept := removalOf(deployed, nil); kept.total > 0 {
		diagnostics.AddAttributeWarning(path.Root("on_destroy"), "Folders stay", fmt.Sprintf(
			"%s on %s: their folders stay in the repository, and are nobody's until an assignment takes them.",
			count(kept.total, "assignment", "assignments"), kept.where(m)))
	}
}
