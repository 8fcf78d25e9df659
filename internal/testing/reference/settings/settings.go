// Package settings lists the tables of the guide "Reference: settings".
package settings

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	agentresource "github.com/flotilla/terraform-provider-flotilla/internal/provider/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/assignment"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/clusterfacts"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/comparison"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/measurements"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/overview"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repositoryfiles"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
)

// Tables are the tables of attributes and of function arguments, in the order of the guide.
func Tables() []*fleet.Table {
	return []*fleet.Table{
		provider.GitTable, provider.VerificationTable, provider.MeasurementsTable, provider.CacheTable, connection.ClusterTable,
		rollout.SettingsTable, rollout.HoldTable,
		assignment.DeliveryTable, assignment.ProtectionTable, assignment.SourceTable,
		agentresource.SecretsTable, agentresource.SecretTable, agent.SettingsTable,
		compliance.FeedbackTable, compliance.WaitTable,
		clusterfacts.SourcesTable, measurements.CheckTable,
		overview.HealthTable, overview.LinksTable, overview.PromotionTable,
		comparison.SideTable, comparison.PairsTable,
		repositoryfiles.LimitsTable,
		timeouts.Table, timeouts.ReadTable,
		fleet.RegistrationOptionsTable,
		adopt.OptionsTable,
	}
}
