package overview

import (
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/promotion"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

// HealthTable describes the attribute health.
var HealthTable = &fleet.Table{
	Name:    "health",
	Meaning: "The attribute `health` of `flotilla_overview`: bounds of the health score. A score between them is `fair`.",
	Attributes: []fleet.Attribute{
		{Name: "good", Type: fleet.WholeType, Default: health.DefaultBounds().Good, Most: 100, Meaning: "A score that reaches it is `good`."},
		{Name: "poor", Type: fleet.WholeType, Default: health.DefaultBounds().Poor, Most: 100, Meaning: "A score below it is `poor`."},
	},
}

// LinksTable describes the attribute links.
var LinksTable = &fleet.Table{
	Name: "links",
	Meaning: "The attribute `links` of `flotilla_overview`: links of the page to an agent's UI, to logs or to the Git host, by their " +
		"titles. Each is an https URL with placeholders, whose values are escaped. A link with a placeholder without a value, such as " +
		"`{cluster}` of an assignment to a cluster type, is left out.",
	Attributes: []fleet.Attribute{
		{
			Name:         "assignments",
			Type:         fleet.TextMapType,
			NullElements: true,
			Meaning:      "Links of each assignment, with the placeholders " + placeholders(report.OfAssignment) + ".",
		},
		{
			Name:         "clusters",
			Type:         fleet.TextMapType,
			NullElements: true,
			Meaning:      "Links of each cluster, with the placeholders " + placeholders(report.OfCluster) + ".",
		},
	},
}

func placeholders(names []string) string { return "`{" + strings.Join(names, "}`, `{") + "}`" }

// PromotionTable describes an element of promotions. A resource has more attributes.
var PromotionTable = withOthers(&fleet.Table{
	Name:    "promotion of an overview",
	Meaning: "One of `promotions` of `flotilla_overview`: a resource `flotilla_promotion`, or an object with some of its attributes.",
	Attributes: []fleet.Attribute{
		{Name: "candidate", Type: fleet.AnyType, Meaning: "The value that is to be let through."},
		{Name: "promoted", Type: fleet.AnyType, Meaning: "The value that was let through last."},
		{Name: "waiting_for", Meaning: "The reason why the candidate waits."},
		{Name: "opened_at", Type: fleet.TimeType, Meaning: "When the gate opened for the candidate."},
		{Name: "promoted_at", Type: fleet.TimeType, Meaning: "When the value was let through."},
	},
})

func withOthers(table *fleet.Table) *fleet.Table {
	for _, name := range slices.Sorted(maps.Keys(promotion.Schema.Attributes)) {
		if table.Find(name) == nil {
			table.Attributes = append(table.Attributes, fleet.Attribute{Name: name, Computed: true})
		}
	}
	return table
}
