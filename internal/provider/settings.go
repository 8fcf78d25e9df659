package provider

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/assignment"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// Settings are the tables by which attributes of resources, data sources and the provider are read, in the order of the guide. The
// objects in them have tables of their own.
func Settings() []*fleet.Table {
	return []*fleet.Table{
		rollout.SettingsTable, rollout.HoldTable,
		assignment.DeliveryTable, assignment.ProtectionTable, assignment.SourceTable,
	}
}
