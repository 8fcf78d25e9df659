// Package connection has the configured provider: repositories, clusters and caches.
package connection

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/measure"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/origin"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/source"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/fleetvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/budget"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Connection is the configured provider.
type Connection struct {
	Delivery *delivery.Service
	Sources  *source.FileReader
	// Artifacts resolves and fetches the artifacts of manifests.
	Artifacts *origin.Resolver
	// Complete is false while a credential is unknown.
	Complete bool
	Clusters Clusters
	// Measure queries measuring servers; nil while a credential for them is unknown.
	Measure *measure.Measurer
	Release string
	Fleets  pipeline.Cache
	Agents  agent.Cache
	// CreatedObjects are the agent objects that this process has created.
	CreatedObjects sync.Map
	// PlannedRoots are the folder-following objects that this process has planned.
	PlannedRoots sync.Map
	Clock        compliance.Clock
	// Budget records the time spent on reading artifacts.
	Budget budget.Ledger
	// Said remembers warnings and errors that several objects share.
	Said once.Memory
}

// CanAsk reports whether requests to repositories and Git hosts are possible already.
func (c *Connection) CanAsk() bool { return c.Complete }

// Now returns the time in whole seconds of UTC.
func (c *Connection) Now() time.Time { return c.Clock.Now().UTC().Truncate(time.Second) }

// WallClock is the clock of a run.
type WallClock struct{}

// Now returns the time.
func (WallClock) Now() time.Time { return time.Now() }

// Sleep returns after d or when the context ends.
func (WallClock) Sleep(ctx context.Context, d time.Duration) {
	_ = wait.For(ctx, d) // sleeping code looks at the context
}

// UserAgent returns the User-Agent of requests, with the release.
func UserAgent(release string) string { return "terraform-provider-flotilla/" + release }

// Compute schedules and hydrates a fleet, and compiles its templates. It returns nil after an error.
func (c *Connection) Compute(value fleet.Value, diagnostics *diag.Diagnostics) *pipeline.Computation {
	result, found := c.Fleets.Compute(value)
	fleetvalue.AddErrors(diagnostics, found)
	return result
}

// Clusters has the provider's clusters by name.
type Clusters struct {
	Known   map[string]kube.Cluster // complete connections
	Waiting map[string]bool         // names of clusters with unknown attributes
	Unknown bool                    // the names are unknown
}

// ClusterTable describes a cluster of the provider.
var ClusterTable = &fleet.Table{
	Name: "cluster of the provider",
	Meaning: "How to reach a cluster. The attributes mean the same as in the provider hashicorp/kubernetes. An entry with " +
		"`kubeconfig` takes no other attribute than `context`. The provider's `clusters` has an entry for each cluster, by its name.",
	Attributes: []fleet.Attribute{
		{Name: "host", Meaning: "URL of the API server, such as `https://api.example.com:6443`."},
		{Name: "cluster_ca_certificate", Meaning: "PEM text of trusted certificates. Default: the certificates of the machine."},
		{Name: "token", Meaning: "Bearer token."},
		{Name: "client_certificate", Meaning: "PEM text of a certificate."},
		{Name: "client_key", Meaning: "PEM text of its private key."},
		{Name: "exec", Type: fleet.ObjectType, Of: execTable, Meaning: "A command that prints a credential, as in a kubeconfig."},
		{Name: "proxy_url", Meaning: "URL of a proxy for http, https or socks5. Unset: from the environment (`HTTPS_PROXY`, `NO_PROXY`)."},
		{Name: "tls_server_name", Meaning: "Name that the server's certificate must have. Default: the name in `host`."},
		{Name: "kubeconfig", Meaning: "Text of a kubeconfig, in place of all of the above. Files that it names must have absolute " +
			"paths. `insecure-skip-tls-verify` in it is a warning."},
		{Name: "context", Meaning: "Which of its contexts. Unset: its current one."},
	},
}

var execTable = &fleet.Table{
	Name:    "exec of a cluster",
	Meaning: "A command that is run when the cluster is asked. Clusters with equal commands share one run.",
	Attributes: []fleet.Attribute{
		{Name: "api_version", Meaning: "The version of the command's answers, such as `client.authentication.k8s.io/v1beta1`."},
		{Name: "command", Meaning: "The command."},
		{Name: "args", Type: fleet.TextsType, EmptyElements: true, Meaning: "Its arguments."},
		{Name: "env", Type: fleet.TextMapType, NullElements: true, Meaning: "Environment variables for it, in addition to Terraform's."},
	},
}

// AskingAttributes are the attributes that [Asking] reads.
func AskingAttributes() []fleet.Attribute {
	return []fleet.Attribute{
		{Name: "deadline", Type: fleet.DurationType, Default: kube.DefaultDeadline.String(), Meaning: "How long one of them may take."},
		{Name: "parallel", Type: fleet.WholeType, Default: kube.DefaultParallel, Least: 1, Most: 4096, Meaning: "How many are asked at once."},
	}
}

// Asking reads the attributes about requests to clusters.
func Asking(o *fleet.ObjectReader) kube.QueryOptions {
	return kube.QueryOptions{Deadline: fleet.ReadTimeout(o, "deadline"), Parallel: o.Int("parallel")}
}

//go:embed clusters.hcl
var clustersExample string

// ClustersAttribute is the attribute clusters.
func ClustersAttribute() schema.Attribute {
	attribute := schemas.OfProvider("How to reach the clusters of the fleet, by their names. Only resources and data sources that ask "+
		"clusters need it, such as `flotilla_compliance`. It is in no state. A value that is not known yet, such as the host of a cluster "+
		"that this apply creates, is no error: the cluster cannot be asked yet.", fleet.ObjectMapType, ClusterTable)
	attribute.MarkdownDescription += "\n\n```terraform\n" + clustersExample + "```"
	return attribute
}

// DecodeClusters reads the attribute clusters. A mistake that many clusters share is one error.
func DecodeClusters(value types.Dynamic, diagnostics *diag.Diagnostics) Clusters {
	settings := Clusters{Known: map[string]kube.Cluster{}, Waiting: map[string]bool{}}
	var wrong wording.Groups[clusterMistake, string]
	switch given := tfvalue.Plain(value).(type) {
	case nil:
	case fleet.Unknown:
		settings.Unknown = true
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(given)) {
			settings.decodeCluster(name, given[name], &wrong)
		}
	default:
		diagnostics.AddAttributeError(path.Root("clusters"), "Invalid clusters",
			"Must be an object with an entry for each cluster: {<name> = {host, …}}.")
	}
	reportMistakes(&wrong, diagnostics)
	return settings
}

func (s *Clusters) decodeCluster(name string, given any, wrong *wording.Groups[clusterMistake, string]) {
	switch {
	case given == nil:
		return // null is absent
	case name == "":
		wrong.Add(clusterMistake{"", "has no name"}, name)
		return
	}
	reader := &fleet.Reader{}
	o := reader.Object(ClusterTable, nil, given)
	if o == nil && reader.Unknown {
		s.Waiting[name] = true
		return
	}
	var cluster kube.Cluster
	var unknown []string
	if o != nil {
		cluster, unknown = readCluster(o)
	}
	for _, finding := range reader.Findings {
		wrong.Add(clusterMistake{finding.Path, strings.Replace(finding.Message, "unknown attribute", "is an unknown attribute", 1)}, name)
	}
	if len(reader.Findings) > 0 {
		return // further errors would follow from these
	}
	for _, problem := range cluster.Check(unknown...) {
		wrong.Add(clusterMistake{problem.Path, problem.Message}, name)
	}
	if reader.Unknown {
		s.Waiting[name] = true
		return
	}
	s.Known[name] = cluster
}

// readCluster returns the attributes of a cluster, and the paths of unknown ones.
func readCluster(o *fleet.ObjectReader) (cluster kube.Cluster, unknown []string) {
	text := func(o *fleet.ObjectReader, name string) string {
		if o.Has(name) && !o.Known(name) {
			unknown = append(unknown, o.At(name).String())
		}
		return o.Text(name)
	}
	cluster = kube.Cluster{
		Host: text(o, "host"), ClusterCACertificate: text(o, "cluster_ca_certificate"), Token: text(o, "token"),
		ClientCertificate: text(o, "client_certificate"), ClientKey: text(o, "client_key"), ProxyURL: text(o, "proxy_url"),
		TLSServerName: text(o, "tls_server_name"), Kubeconfig: text(o, "kubeconfig"), Context: text(o, "context"),
	}
	cluster.Exec = fleet.ReadObject(o, "exec", func(exec *fleet.ObjectReader) *kube.Exec {
		return &kube.Exec{
			APIVersion: text(exec, "api_version"),
			Command:    text(exec, "command"),
			Args:       exec.Texts("args"),
			Env:        exec.TextMap("env"),
		}
	})
	if cluster.Exec == nil && o.Has("exec") {
		unknown = append(unknown, "exec")
	}
	o.Finish()
	return cluster, unknown
}

// Access reports why a cluster cannot be reached: waits while its connection is unknown, missing if clusters lacks its
// name.
func (s *Clusters) Access(name string) (waits, missing bool) {
	if s.Unknown || s.Waiting[name] {
		return true, false
	}
	_, known := s.Known[name]
	return false, !known
}

// AddMissing reports that clusters lacks a name.
func (s *Clusters) AddMissing(at path.Path, name string, diagnostics *diag.Diagnostics) {
	diagnostics.AddAttributeError(at, "Provider does not know this cluster", fmt.Sprintf(
		"The provider's clusters has no entry %q%s", name, cmp.Or(fleet.DidYouMean(name, slices.Sorted(maps.Keys(s.Known))), ".")))
}

// WarnOfUnverified names the clusters whose certificate is not verified.
func (s *Clusters) WarnOfUnverified(diagnostics *diag.Diagnostics) {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(s.Known)) {
		if s.Known[name].Unverified() {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		tfvalue.AddWarningf(diagnostics, path.Root("clusters"), "Certificates of clusters are not checked",
			"The %s of %s %s insecure-skip-tls-verify. Any server at the address gets the credentials of the cluster, and with "+
				"flotilla_agent those of the GitOps repository. Set certificate-authority-data instead.",
			wording.OneOrMany(len(names), "kubeconfig", "kubeconfigs"), wording.List(names, wording.Named),
			wording.OneOrMany(len(names), "sets", "set"))
	}
}

type clusterMistake struct{ at, message string }

// reportMistakes reports each mistake once, with the names of its clusters.
func reportMistakes(wrong *wording.Groups[clusterMistake, string], diagnostics *diag.Diagnostics) {
	for mistake, names := range wrong.All() {
		at := fmt.Sprintf("clusters[%q]", names[0])
		if mistake.at != "" {
			at += "." + mistake.at
		}
		message := tfvalue.Sentence(at + " " + mistake.message)
		if others := names[1:]; len(others) > 0 {
			message += fmt.Sprintf(" The same error is in %s: %s.", wording.Count(len(others), "other cluster", "other clusters"),
				wording.List(others, wording.Named))
		}
		diagnostics.AddAttributeError(path.Root("clusters"), "Invalid clusters", message)
	}
}
