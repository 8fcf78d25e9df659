package reference

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
)

// Fleet returns the guide "Reference of the fleet", Markdown.
func Fleet() string {
	return sections(fleetIntroduction, fleet.RootTable())
}

const fleetIntroduction = `---
page_title: "Reference: the fleet"
subcategory: ""
description: |-
  Every object that a fleet is made of, with each attribute: its type, its default and what it means.
---

# Reference: the fleet

These tables are those by which ` + "`provider::flotilla::fleet`" + ` reads; the resources of the same names have the same attributes. ` +
	`An attribute that no table has is an error. ` + "`null`" + ` is the same as an attribute that is not set. *Since* is the version of the provider that has an attribute first.

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

// sections returns an introduction, and a section for each table: those given, each with those of the objects in it.
func sections(introduction string, tables ...*fleet.Table) string {
	var b strings.Builder
	b.WriteString(introduction)
	seen := map[*fleet.Table]bool{}
	var add func(table *fleet.Table)
	add = func(table *fleet.Table) {
		if table == nil || seen[table] {
			return
		}
		seen[table] = true
		section(&b, table)
		for i := range table.Attributes {
			add(table.Attributes[i].Of)
		}
	}
	for _, table := range tables {
		add(table)
	}
	return b.String()
}

func section(b *strings.Builder, table *fleet.Table) {
	first, size := utf8.DecodeRuneInString(table.Name)
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| Attribute | Type | Default | Meaning | Since |\n|---|---|---|---|---|\n", string(unicode.ToUpper(first))+table.Name[size:], table.Meaning)
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
			typ += ": [" + attribute.Of.Name + "](#" + attribute.Of.Anchor() + ")"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", attribute.Name, typ, byDefault, strings.ReplaceAll(attribute.Meaning, "|", `\|`), attribute.SinceVersion())
	}
}

// Guides returns all guides, by the names of their files.
func Guides() map[string]string {
	return map[string]string{"reference-fleet.md": Fleet()}
}
