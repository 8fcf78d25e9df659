package repository

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
)

// Source is the commit of Terraform's configuration that a change came from.
var Source = table.Object[folder.Source]{
	table.Text("url", "URL of the repository that has the configuration of Terraform.", func(s folder.Source) string { return s.URL }),
	table.Text("commit", "Full id of the commit there.", func(s folder.Source) string { return s.Commit }),
}
