package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

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
	at := path.Root("protection")
	limits := protection{}
	object, ok := plain(value).(map[string]any)
	if !ok {
		if _, unknown := plain(value).(fleet.Unknown); !unknown && plain(value) != nil {
			diagnostics.AddAttributeError(at, "Invalid protection", "Must be an object: {max_removed, max_removed_percent, allow_empty}.")
		}
		return limits
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		value := object[key]
		if _, unknown := value.(fleet.Unknown); unknown || value == nil {
			continue
		}
		var fits bool
		switch key {
		case "max_removed":
			limits.maxRemoved, fits = limit(value, 1<<31)
		case "max_removed_percent":
			limits.maxRemovedPercent, fits = limit(value, 100)
		case "allow_empty":
			limits.allowEmpty, fits = value.(bool)
		default:
			diagnostics.AddAttributeError(at, "Invalid protection", sentence(fmt.Sprintf("unknown attribute %q%s", key,
				fleet.DidYouMean(key, []string{"max_removed", "max_removed_percent", "allow_empty"}))))
			continue
		}
		if !fits {
			diagnostics.AddAttributeError(at, "Invalid protection", fmt.Sprintf("%s does not take this value: "+
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

// check fails a plan that removes more than is allowed.
func (p protection) check(before, wanted gitops.Deployed, diagnostics *diag.Diagnostics) {
	total, left := 0, 0
	var removed []string
	hosts := map[string]bool{}
	for _, host := range slices.Sorted(maps.Keys(before)) {
		for _, target := range slices.Sorted(maps.Keys(before[host])) {
			total++
			if _, stays := wanted[host][target]; !stays {
				removed = append(removed, host+"/"+target)
				hosts[host] = true
			}
		}
	}
	for _, targets := range wanted {
		left += len(targets)
	}
	at := path.Root("protection")
	if left == 0 && total > 0 && wanted != nil && !p.allowEmpty {
		diagnostics.AddAttributeError(at, "Fleet assigns nothing",
			fmt.Sprintf("%s deployed, and this plan would remove all of them. "+
				"If that is meant, set protection = { allow_empty = true }.", count(total, "assignment is", "assignments are")))
		return
	}
	if reason := p.exceeded(len(removed), total); reason != "" {
		diagnostics.AddAttributeError(at, "Mass deletion",
			fmt.Sprintf("This plan would remove %d of %s on %s, %s: %s.\n\n"+
				"If that is meant, raise max_removed or max_removed_percent in protection, and apply that first where this is a destroy.",
				len(removed), count(total, "assignment", "assignments"), count(len(hosts), "host", "hosts"), reason, describe(removed, 10)))
	}
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

// protectDestroy holds a destroy to the limits that the state has.
func (m *assignmentModel) protectDestroy(diagnostics *diag.Diagnostics) {
	limits := decodeProtection(m.Protection, diagnostics)
	limits.check(m.deployment(nil, diagnostics), nil, diagnostics) //nolint:staticcheck // no conversion of the framework's uses the context
}
