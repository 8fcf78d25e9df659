package repository

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Source is the commit of the Terraform configuration that caused a change.
var Source = table.Definition[folder.Source]{
	table.Text("url", "URL of the repository that has the configuration of Terraform.", folder.Source.URL),
	table.Text("commit", "Full id of the commit there.", folder.Source.Commit),
}

// Manifests locates the manifests of a deployment target.
var Manifests = table.Definition[*folder.Manifests]{
	table.Text("storage", "`git`, `helm` or `oci`.", func(m *folder.Manifests) string { return m.Storage }),
	table.Text("repo", "URL of the repository.", func(m *folder.Manifests) string { return m.Repo }),
	table.TextOrNull("branch", "The branch.", func(m *folder.Manifests) string { return m.Branch }),
	table.TextOrNull("tag", "The tag.", func(m *folder.Manifests) string { return m.Tag }),
	table.TextOrNull("commit", "The commit.", func(m *folder.Manifests) string { return m.Commit }),
	table.TextOrNull("path", "Path in the repository or artifact.", func(m *folder.Manifests) string { return m.Path }),
	table.TextOrNull("chart", "Name of the chart.", func(m *folder.Manifests) string { return m.Chart }),
	table.TextOrNull("version", "Version of the chart or artifact.", func(m *folder.Manifests) string { return m.Version }),
	table.TextOrNull("digest", "Digest of the artifact.", func(m *folder.Manifests) string { return m.Digest }),
	table.ObjectOrNull("pin", "The pin that they were resolved to, by `artifacts` of the fleet; null where they are not pinned.", pin,
		func(m *folder.Manifests) folder.Pin { return m.Pin }),
}

var pin = table.Definition[folder.Pin]{
	table.TextOrNull("commit", "The commit, of Git.", func(p folder.Pin) string { return p.Commit }),
	table.TextOrNull("version", "The exact version of the chart or artifact, or its tag.", func(p folder.Pin) string { return p.Version }),
	table.TextOrNull("digest", "Digest of the artifact, or of the chart's archive.", func(p folder.Pin) string { return p.Digest }),
}
