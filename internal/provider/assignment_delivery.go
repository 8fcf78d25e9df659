package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

var deliveryAttributes = []string{"mode", "forge", "api_url", "branch", "title", "labels", "reviewers", "merge"}

// decodeDelivery reads the attribute delivery, strictly. Unknown values are passed over.
func decodeDelivery(value types.Dynamic, diagnostics *diag.Diagnostics) delivery.Settings {
	how := delivery.Settings{}
	report := func(format string, arguments ...any) {
		diagnostics.AddAttributeError(path.Root("delivery"), "Invalid delivery", sentence(fmt.Sprintf(format, arguments...)))
	}
	object, ok := plain(value).(map[string]any)
	if !ok {
		if _, unknown := plain(value).(fleet.Unknown); !unknown && plain(value) != nil {
			report("must be an object: {mode = \"push\"} or {mode = \"pull_request\", …}")
		}
		return how
	}
	oneOf := func(key, text string, allowed ...string) string {
		if !slices.Contains(allowed, text) {
			report("attribute %s must be one of %s", key, strings.Join(allowed, ", "))
		}
		return text
	}
	given := 0
	for _, key := range slices.Sorted(maps.Keys(object)) {
		if object[key] != nil {
			given++
		}
		if !slices.Contains(deliveryAttributes, key) {
			report("unknown attribute %q%s", key, fleet.DidYouMean(key, deliveryAttributes))
			continue
		}
		if !fleet.IsKnown(object[key]) || object[key] == nil {
			continue
		}
		if key == "labels" || key == "reviewers" {
			texts, ok := textList(object[key])
			if !ok {
				report("attribute %s must be a list of names", key)
			}
			if key == "labels" {
				how.Labels = texts
			} else {
				how.Reviewers = texts
			}
			continue
		}
		text, ok := object[key].(string)
		if !ok {
			report("attribute %s must be a string", key)
			continue
		}
		switch key {
		case "mode":
			how.PullRequest = oneOf(key, text, "push", "pull_request") == "pull_request"
		case "forge":
			how.Forge = forge.Forge(oneOf(key, text, "gitea", "forgejo", "github", "gitlab"))
		case "merge":
			if oneOf(key, text, "none", "when_checks_succeed", "now") != "none" {
				how.Merge = forge.MergeMode(text)
			}
		case "branch":
			if err := git.CheckBranch(text); err != nil {
				report("%s", err)
			}
			how.Head = text
		case "api_url":
			how.APIURL = text
		case "title":
			how.Title = text
		}
	}
	if !how.PullRequest && given > 1 && object["mode"] != nil && fleet.IsKnown(object["mode"]) {
		report("with mode = \"push\" there is nothing else to set")
	}
	return how
}

func textList(value any) (texts []string, ok bool) {
	list, ok := value.([]any)
	for _, element := range list {
		text, isText := element.(string)
		ok = ok && isText
		texts = append(texts, text)
	}
	return texts, ok
}
