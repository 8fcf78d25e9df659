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
