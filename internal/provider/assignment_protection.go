package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// decodeProtection reads the attribute protection, strictly.
func decodeProtection(value types.Dynamic, diagnostics *diag.Diagnostics) rollout.Protection {
	limits := rollout.Protection{}
	object := settings("protection", value, []string{"max_removed", "max_removed_percent", "allow_empty", "emptied_hosts"}, diagnostics)
	for _, key := range slices.Sorted(maps.Keys(object)) {
		var fits bool
		switch key {
		case "max_removed":
			limits.MaxRemoved, fits = limit(object[key], 1<<31)
		case "max_removed_percent":
			limits.MaxRemovedPercent, fits = limit(object[key], 100)
		case "allow_empty":
			limits.AllowEmpty, fits = object[key].(bool)
		case "emptied_hosts":
			limits.EmptiedHosts, fits = textList(object[key])
		}
		if !fits {
			diagnostics.AddAttributeError(path.Root("protection"), "Invalid protection", fmt.Sprintf("%s does not take this value: "+
				"max_removed is a whole number, max_removed_percent one from 0 to 100, allow_empty true or false, emptied_hosts a list of hosts.", key))
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
