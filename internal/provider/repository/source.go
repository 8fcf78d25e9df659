package repository

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
)

// Source is the commit of Terraform's configuration that a change came from.
var Source = table.Object[folder.Source]{
	table.Text("url", "URL of the repository that has the configuration of Terraform.", folder.Source.URL),
	table.Text("commit", "Full id of the commit there.", folder.Source.Commit),
}

// Manifests are where the manifests of a deployment target are.
var Manifests = table.Object[*folder.Manifests]{
	table.Text("storage", "`git`, `helm` or `oci`.", func(m *folder.Manifests) string { return m.Storage }),
	table.Text("repo", "URL of the repository.", func(m *folder.Manifests) string { return m.Repo }),
	table.TextOrNull("branch", "The branch.", func(m *folder.Manifests) string { return m.Branch }),
	table.TextOrNull("tag", "The tag.", func(m *folder.Manifests) string { return m.Tag }),
	table.TextOrNull("commit", "The commit.", func(m *folder.Manifests) string { return m.Commit }),
	table.TextOrNull("path", "Path in the repository or artifact.", func(m *folder.Manifests) string { return m.Path }),
	table.TextOrNull("chart", "Name of the chart.", func(m *folder.Manifests) string { return m.Chart }),
	table.TextOrNull("version", "Version of the chart or artifact.", func(m *folder.Manifests) string { return m.Version }),
}
