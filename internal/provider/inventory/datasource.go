// Package inventory implements flotilla_inventory: the assignments and claims of all owners on a branch.
package inventory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/connection"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/table"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/timeouts"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// New returns the data source.
func New() datasource.DataSource {
	return frame.DataSource[inventoryModel]{
		Name: "inventory", Read: read,
		Description: "Which assignments and claims a branch of a GitOps repository has, of all owners (`flotilla_assignment` " +
			"resources of all states), from their records: assignments of a cluster, hosts of a workload, and times; claimed " +
			"clusters; with `evidences`, the reports of clusters. No cluster is asked, and only the records are read. With " +
			"`git.allowed_signers` of the provider, records that none of these keys has signed are named in a warning, with their commits.",
		Attributes: map[string]schema.Attribute{
			"gitops_repo": schemas.RequiredDynamic(
				schemas.Location(fmt.Sprintf("Where to look. Owners are found at the path and up to %d folders below it; "+
					"without a path, from the root.", gitops.InventoryLevels)),
			),
			"owner": schemas.OptionalText("Only assignments of owners of this name."),
			"host":  schemas.OptionalText("Only assignments on this host: a cluster type, or `clusters/<cluster>`."),
			"cluster": schemas.OptionalText(
				"Only assignments on this cluster, or on its cluster type, which is read from the records unless `cluster_type` is set.",
			),
			"cluster_type": schemas.OptionalText(
				"Only assignments on this cluster type and its clusters; with `cluster`, the type of that cluster.",
			),
			"workload": schemas.OptionalText("Only assignments of this workload."),
			"workspace": schemas.OptionalText("Only assignments of workloads of this workspace. Assignments whose records do not name it are " +
				"left out, until the host is written again."),
			"evidences": repository.EvidencesAttribute("Reports of clusters, for the verdicts of the assignments"),
			"limit":     schemas.OptionalWhole(fmt.Sprintf("How many assignments are listed at most. Default %d.", defaultInventory)),
			"timeouts":  timeouts.ReadAttribute(),
			"commit":    schemas.ComputedText("Id of the commit that was read; null if the branch does not exist."),
			"complete":  schemas.ComputedBool("Whether `assignments` is complete, or was cut at `limit`."),
			"owners":    owners.ListAttribute("All owners, by path and name, regardless of filters."),
			"claims": claims.ListAttribute("All claims (`flotilla_cluster_claim` resources of all states), by path and name, regardless of " +
				"filters. A cluster in two claims at one path is reported in a warning."),
			"assignments": assignments.ListAttribute("Assignments, ordered by path, owner, host and deployment target."),
		},
	}.New()
}

// defaultInventory lists more assignments than the reference fleet has.
const defaultInventory = 25_000

type inventoryModel struct {
	GitopsRepo  types.Dynamic `tfsdk:"gitops_repo"`
	Owner       types.String  `tfsdk:"owner"`
	Host        types.String  `tfsdk:"host"`
	Cluster     types.String  `tfsdk:"cluster"`
	ClusterType types.String  `tfsdk:"cluster_type"`
	Workload    types.String  `tfsdk:"workload"`
	Workspace   types.String  `tfsdk:"workspace"`
	Evidences   types.List    `tfsdk:"evidences"`
	Limit       types.Int64   `tfsdk:"limit"`
	Timeouts    types.Dynamic `tfsdk:"timeouts"`
	Commit      types.String  `tfsdk:"commit"`
	Complete    types.Bool    `tfsdk:"complete"`
	Owners      types.List    `tfsdk:"owners"`
	Claims      types.List    `tfsdk:"claims"`
	Assignments types.List    `tfsdk:"assignments"`
}

var owners = table.Definition[gitops.Owner]{
	table.TextOrNull("path", "Path of the owner in the repository; null for the root.", func(o gitops.Owner) string { return o.Path }),
	table.Text("name", "Name of the owner.", func(o gitops.Owner) string { return o.Name }),
}

var claims = table.Definition[gitops.Claim]{
	table.TextOrNull("path", "Path of the claim in the repository; null for the root.", func(c gitops.Claim) string { return c.Path }),
	table.Text("name", "Name of the claim.", func(c gitops.Claim) string { return c.Name }),
	table.TextOrNull("environment", "Name of the environment; null where the record does not say.",
		func(c gitops.Claim) string { return c.Environment }),
	table.Texts("clusters", "Names of its clusters, oldest first.", gitops.Claim.Names),
}

// assignment is a folder in a record, with reports about it.
type assignment struct {
	*gitops.InventoryAssignment
	verdict.Status
}

var assignments = table.Definition[assignment]{
	table.TextOrNull("path", "Path of the owner in the repository; null for the root.", func(a assignment) string { return a.Owner.Path }),
	table.Text("owner", "Name of the owner.", func(a assignment) string { return a.Owner.Name }),
	table.TextOrNull("environment", "Name of the environment; null where the record does not say.",
		func(a assignment) string { return a.Owner.Environment }),
	table.Text("host", "The host: a cluster type, or `clusters/<cluster>`.", func(a assignment) string { return a.Host }),
	table.TextOrNull("cluster_type", "Name of the cluster type; null where the host is a cluster whose type its record does not say.",
		func(a assignment) string {
			if strings.HasPrefix(a.Host, clusterHosts) {
				return a.ClusterType
			}
			return a.Host
		}),
	table.TextOrNull("cluster", "Name of the cluster; null where the host is a cluster type.", func(a assignment) string {
		cluster, _ := strings.CutPrefix(a.Host, clusterHosts)
		if cluster == a.Host {
			return ""
		}
		return cluster
	}),
	table.Text("deployment_target", "Full name of the deployment target.", func(a assignment) string { return a.DeploymentTarget }),
	table.Text("workload", "Name of the workload.", func(a assignment) string { return a.Workload }),
	table.TextOrNull("workspace", "Name of the workspace; null where the record does not say.",
		func(a assignment) string { return a.Workspace }),
	table.Texts("policies", "Names of the target policies that decided it.", func(a assignment) []string { return a.Policies }),
	table.TextOrNull("config_version", "Version of the configuration; null where the record does not say.",
		func(a assignment) string { return a.ConfigVersion }),
	table.ObjectOrNull("manifests", "Its manifests, in the words of the deployment target; null where the record does not say.",
		repository.Manifests, func(a assignment) *folder.Manifests { return a.Manifests }),
	table.Text("tree", "Id of the tree that the folder has, as its owner wrote it.", func(a assignment) string { return a.Tree }),
	table.TextOrNull("changed", "When the folder changed last, RFC 3339; null where the record does not say.",
		func(a assignment) string { return tfvalue.TimeText(a.Changed) }),
	table.TextOrNull("commit", "Id of the commit that changed the folder last; null where it is not among the newest commits of the "+
		"branch, as after a pull request that was squashed.", func(a assignment) string { return a.Commit }),
	table.ObjectOrNull("source", "Where the last change came from, by the attribute `source` of the assignment; null where it was not set.",
		repository.Source, func(a assignment) folder.Source { return a.Source }),
	table.TextOrNull("verdict",
		"The verdict of clusters on it, the worst of all: `ready`, `progressing`, `behind`, `failed` or `unknown`; null where `evidences` "+
			"has none of its owner, or no cluster of its host was asked.", func(a assignment) string { return string(a.Verdict) }),
	table.TextOrNull("since", "Since when `verdict` holds, RFC 3339; null where there is none.",
		func(a assignment) string { return tfvalue.TimeText(a.Since) }),
	table.TextOrNull("message", "The cluster with `verdict`, and the reason; null where there is none.",
		func(a assignment) string { return wording.Visible(a.Message) }),
	table.Objects("objects",
		"The objects that the agent reconciles it by.", objects, func(a assignment) []folder.ObjectRef { return a.Objects }),
}

const clusterHosts = "clusters/"

var objects = table.Definition[folder.ObjectRef]{
	table.Text("kind", "Kind of the object.", func(o folder.ObjectRef) string { return o.Kind }),
	table.TextOrNull("namespace", "Namespace of the object; null where it has none.", func(o folder.ObjectRef) string { return o.Namespace }),
	table.Text("name", "Name of the object.", func(o folder.ObjectRef) string { return o.Name }),
}

func read(ctx context.Context, c *connection.Connection, m *inventoryModel, diagnostics *diag.Diagnostics) {
	at := m.decode(diagnostics)
	if diagnostics.HasError() {
		return
	}
	found, err := c.Delivery.ReadInventory(ctx, at, gitops.InventoryFilter{
		Owner: m.Owner.ValueString(), Host: m.Host.ValueString(), Cluster: m.Cluster.ValueString(),
		ClusterType: m.ClusterType.ValueString(), Workload: m.Workload.ValueString(), Workspace: m.Workspace.ValueString(),
	})
	if err != nil {
		repository.AddError(ctx, diagnostics, err, false)
		return
	}
	m.warn(found, diagnostics)
	verdicts := m.verdicts(ctx, c, at, diagnostics)
	if diagnostics.HasError() {
		return
	}
	limit := defaultInventory
	if !m.Limit.IsNull() {
		limit = int(min(m.Limit.ValueInt64(), int64(len(found.Assignments)))) //nolint:gosec // the length of a slice
	}
	listed := make([]assignment, min(limit, len(found.Assignments)))
	for i := range listed {
		one := &found.Assignments[i]
		listed[i] = assignment{one, verdicts[gitops.Owner{Name: one.Owner.Name, Path: one.Owner.Path}][one.Key]}
	}
	m.Commit, m.Complete = types.StringPointerValue(wording.OrNil(found.Commit)), types.BoolValue(len(listed) == len(found.Assignments))
	m.Owners, m.Claims = owners.List(found.Owners), claims.List(found.Claims)
	m.Evidences = repository.HashedEvidences(m.Evidences)
	m.Assignments = types.ListNull(assignments.Type())
	if !wire.SetAside(ctx, "assignments", func(w *wire.Writer) { assignments.WriteList(w, listed) }) {
		m.Assignments = assignments.List(listed)
	}
}

func (m *inventoryModel) verdicts(
	ctx context.Context, c *connection.Connection, at folder.Location, diagnostics *diag.Diagnostics,
) map[gitops.Owner]map[folder.Key]verdict.Status {
	if m.Evidences.IsNull() {
		return nil
	}
	found := map[gitops.Owner]map[folder.Key]verdict.Status{}
	owned := repository.OwnersAt(ctx, c.Delivery, at, m.Evidences, diagnostics)
	for i := range owned {
		owner := owned[i].Owner
		found[gitops.Owner{Name: owner.Name, Path: owner.Location.Path}] = owned[i].Verdicts()
	}
	return found
}

func (m *inventoryModel) decode(diagnostics *diag.Diagnostics) folder.Location {
	at, _ := repository.DecodeLocation(m.GitopsRepo, diagnostics)
	tfvalue.CheckLimit(m.Limit, diagnostics)
	narrowing := map[string]types.String{
		"owner": m.Owner, "host": m.Host, "cluster": m.Cluster, "cluster_type": m.ClusterType, "workload": m.Workload, "workspace": m.Workspace,
	}
	for _, name := range slices.Sorted(maps.Keys(narrowing)) {
		if value := narrowing[name]; !value.IsNull() && value.ValueString() == "" {
			diagnostics.AddAttributeError(path.Root(name), "Empty name", "Remove the attribute, or set it to null, for no filter.")
		}
	}
	if !m.Host.IsNull() && (!m.Cluster.IsNull() || !m.ClusterType.IsNull()) {
		diagnostics.AddAttributeError(path.Root("host"), "Host is given twice",
			"A host is a cluster type or a cluster: set either host, or cluster and cluster_type.")
	}
	return at
}

// warn reports names without a record, records that are damaged or lack an allowed signature, and clusters of two
// claims.
func (m *inventoryModel) warn(found gitops.Inventory, diagnostics *diag.Diagnostics) {
	if len(found.Unreadable) > 0 {
		tfvalue.AddWarningf(diagnostics, path.Root("gitops_repo"), "Records cannot be read",
			"The inventory lacks what these files record: %s. The next apply of their owners writes them again.",
			wording.List(found.Unreadable, fleetvalue.MaxDiagnostics))
	}
	if len(found.Unsigned) > 0 {
		named := make([]string, len(found.Unsigned))
		for i, record := range found.Unsigned {
			named[i] = record.String()
		}
		diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Records are not signed by a known key",
			"Anybody who may push can have written what the inventory has from them:\n"+wording.Lines(named, fleetvalue.MaxDiagnostics))
	}
	if twice := gitops.FindClaimedTwice(found.Claims); len(twice) > 0 {
		named := make([]string, len(twice))
		for i, cluster := range twice {
			named[i] = tfvalue.Sentence(cluster.String())
		}
		diagnostics.AddAttributeWarning(path.Root("gitops_repo"), "Cluster belongs to two claims",
			wording.Lines(named, fleetvalue.MaxDiagnostics)+"\nPlans of these claims are refused until only one of the records lists the "+
				"cluster.")
	}
	var owners []string
	for _, owner := range found.Owners {
		owners = append(owners, owner.Name)
	}
	var clusters, clusterTypes []string
	for _, host := range found.Names.Hosts {
		if cluster, ok := strings.CutPrefix(host, "clusters/"); ok {
			clusters = append(clusters, cluster)
		} else {
			clusterTypes = append(clusterTypes, host)
		}
	}
	if !m.Cluster.IsNull() && found.TypeUnknown {
		name := m.Cluster.ValueString()
		if near := fleet.DidYouMean(name, clusters); near != "" && !slices.Contains(clusters, name) {
			tfvalue.AddWarningf(diagnostics, path.Root("cluster"), "No record of this cluster",
				"no record is of a cluster %q%s", name, near)
		} else {
			tfvalue.AddWarningf(diagnostics, path.Root("cluster"), "Cluster type is not known",
				"No record names the type of cluster %q, so the inventory lacks the assignments of its type. Set cluster_type.", name)
		}
	}
	if len(found.Assignments) > 0 {
		return
	}
	for _, by := range []struct {
		attribute, kind string
		value           types.String
		names           []string
	}{
		{"owner", "owner", m.Owner, owners},
		{"host", "host", m.Host, found.Names.Hosts},
		{"cluster_type", "cluster type", m.ClusterType, clusterTypes},
		{"workload", "workload", m.Workload, found.Names.Workloads},
		{"workspace", "workspace", m.Workspace, found.Names.Workspaces},
	} {
		if name := by.value.ValueString(); name != "" && !slices.Contains(by.names, name) {
			tfvalue.AddWarningf(diagnostics, path.Root(by.attribute), "No record of this "+by.kind,
				"no record that was read is of %s %q%s", by.kind, name, fleet.DidYouMean(name, by.names))
		}
	}
}
