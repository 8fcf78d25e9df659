package clusterfacts

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
)

// SourcesTable describes the attribute sources.
var SourcesTable = &fleet.Table{
	Name:    "sources",
	Meaning: "The attribute `sources` of `flotilla_cluster_facts`: where clusters are found. Unset: `{clusters = true}`.",
	Attributes: []fleet.Attribute{
		{
			Name: "clusters", Type: fleet.BoolOrObjectType, Of: askingTable, Default: false,
			Meaning: "Whether the provider's `clusters` are asked, and which and how.",
		},
		{
			Name: "hub", Type: fleet.TextOrObjectType, Of: hubTable,
			Meaning: "The name of one of the provider's `clusters`, where others have registered clusters, and the parts to read.",
		},
	},
}

var askingTable = &fleet.Table{
	Name:    "asking for facts",
	Meaning: "Which clusters are asked for facts, and how.",
	Attributes: append([]fleet.Attribute{
		{Name: "names", Type: fleet.TextsType, EmptyElements: true, Meaning: "Which of the provider's `clusters`. Unset: all. `[]` is none."},
	}, connection.AskingAttributes()...),
}

var hubTable = &fleet.Table{
	Name: "hub",
	Meaning: "The settings of a hub. A kind that it does not serve has no clusters; a hub that does not answer, or does not let these " +
		"be listed, is an error, since it is not known then which clusters there are.",
	Attributes: []fleet.Attribute{
		{Name: "name", Required: true, Meaning: "Name of the hub, one of the provider's `clusters`."},
		{
			Name: "argocd", Type: fleet.BoolType, Default: true,
			Meaning: "Whether the Secrets of Argo CD's clusters are read. Name, URL and labels of each are kept, never credentials or annotations.",
		},
		{Name: "namespace", Default: reconciler.Hub().Namespace, Meaning: "The namespace of those Secrets."},
		{
			Name: "cluster_profiles", Type: fleet.BoolType, Default: true,
			Meaning: "Whether the objects `ClusterProfile` of `multicluster.x-k8s.io/v1alpha1` are read in all namespaces.",
		},
	},
}
