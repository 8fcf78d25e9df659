package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/resource"
)

// Resources lists the constructors of all resources.
func (p *flotilla) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		newAgentResource,
		newAssignmentResource,
		newPromotionResource,
		newClusterClaimResource,
		clusterResource,
		clusterTypeResource,
		configContainerResource,
		configSchemaResource,
		constraintResource,
		environmentResource,
		targetPolicyResource,
		templateResource,
		workloadResource,
		workspaceResource,
	}
}

// DataSources lists the constructors of all data sources.
func (p *flotilla) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		newComplianceDataSource,
		newConfigSnapshotsDataSource,
		newDiffDataSource,
		newHistoryDataSource,
		newInventoryDataSource,
		newManifestsDataSource,
		newOverviewDataSource,
		newRepositoryFilesDataSource,
		newSchedulingDataSource,
	}
}

// Functions lists the constructors of all functions.
func (p *flotilla) Functions(context.Context) []func() function.Function {
	return []func() function.Function{
		newAgentManifestsFunction,
		newControlPlaneFunction,
		newFleetFunction,
		newMergeFunction,
		newRegistrationsFunction,
		newSelectorMatchesFunction,
	}
}
