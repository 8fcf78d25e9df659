package reference

import (
	"fmt"
	"maps"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// Fleet returns the guide "Reference: the fleet" in Markdown.
func Fleet() string {
	return sections(fleetIntroduction, nil, fleet.RootTable())
}

const fleetIntroduction = `---
page_title: "Reference: the fleet"
subcategory: "Reference"
description: |-
  Every object that a fleet is made of, with each attribute: its type, its default and what it means.
---

# Reference: the fleet

These tables are those by which ` + "`provider::flotilla::fleet`" + ` reads. The resources of the same names have these attributes, too, with two differences: ` +
	"`environment`" + ` is required in clusters, cluster types and target policies, and lists whose order has no meaning are sets. ` +
	`An attribute that no table has is an error. ` + "`null`" + ` is the same as an attribute that is not set.

Editors complete and check YAML files by [JSON Schemas](` + SchemasURL + `fleet.json) that are made of the same tables. A first line names the schema: of one object
(` + "`cluster.json`" + `), of a list or map of them (` + "`clusters.json`" + `), or of the whole argument (` + "`fleet.json`" + `).

` + "```yaml" + `
# yaml-language-server: $schema=` + SchemasURL + `clusters.json
- name: drone-7
  environment: dev
  cluster_type: drone
  labels: {region: east}
` + "```" + `

` + "```terraform" + `
locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    cluster_types = [{ name = "drone", environment = "dev" }]
    clusters      = yamldecode(file("clusters.yaml"))
  })
}
` + "```" + `

Names, versions, tags, refs and labels are text: a number in place of one is an error, since ` + "`1.10`" + ` would become 1.1. Durations are text such as ` + "`\"90s\"`" + `.
`

// Settings returns the guide "Reference: settings" from the tables of resources, data sources and the provider.
func Settings(tables ...*fleet.Table) string {
	inFleet := map[*fleet.Table]bool{}
	eachTable(inFleet, func(*fleet.Table) {}, fleet.RootTable())
	return sections(settingsIntroduction, inFleet, tables...)
}

// eachTable visits tables and nested tables that are not in seen.
func eachTable(seen map[*fleet.Table]bool, do func(*fleet.Table), tables ...*fleet.Table) {
	for _, table := range tables {
		if table == nil || seen[table] {
			continue
		}
		seen[table] = true
		do(table)
		for i := range table.Attributes {
			eachTable(seen, do, table.Attributes[i].Of)
		}
	}
}

const settingsIntroduction = `---
page_title: "Reference: settings"
subcategory: "Reference"
description: |-
  Every object in the attributes of resources, data sources and the provider, with each attribute: its type, its default and what it means.
---

# Reference: settings

Attributes such as ` + "`rollout`" + ` and ` + "`delivery`" + ` are objects, or lists or maps of them. The provider reads them by these tables: a misspelt attribute, ` +
	`which Terraform would drop without a word, is an error. ` + "`null`" + ` is the same as an attribute that is not set.

All other attributes are on the pages of the resources and data sources. Objects of a fleet, such as selectors and ` + "`gitops_repo`" + `, are in [Reference: the fleet](reference-fleet.md).

Durations are text such as ` + "`\"90s\"`" + `; times are text such as ` + "`\"2026-01-31T18:00:00Z\"`" + `.
`

// sections writes tables that are not in inFleet.
func sections(introduction string, inFleet map[*fleet.Table]bool, tables ...*fleet.Table) string {
	var b strings.Builder
	b.WriteString(introduction)
	seen := map[*fleet.Table]bool{}
	maps.Copy(seen, inFleet)
	eachTable(seen, func(table *fleet.Table) { section(&b, inFleet, table) }, tables...)
	return b.String()
}

func section(b *strings.Builder, inFleet map[*fleet.Table]bool, table *fleet.Table) {
	first, size := utf8.DecodeRuneInString(table.Name)
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| Attribute | Type | Default | Meaning |\n|---|---|---|---|\n",
		string(unicode.ToUpper(first))+table.Name[size:], table.Meaning)
	for i := range table.Attributes {
		attribute := &table.Attributes[i]
		if attribute.Computed {
			continue
		}
		byDefault := attribute.DefaultText()
		switch {
		case attribute.Required:
			byDefault = "required"
		case byDefault != "":
			byDefault = "`" + byDefault + "`"
		}
		typ := attribute.TypeText()
		if attribute.Of != nil {
			page := map[bool]string{true: "reference-fleet.md"}[inFleet[attribute.Of]]
			typ += ": [" + attribute.Of.Name + "](" + page + "#" + attribute.Of.Anchor() + ")"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", attribute.Name, typ, byDefault, strings.ReplaceAll(attribute.Meaning, "|", `\|`))
	}
}
