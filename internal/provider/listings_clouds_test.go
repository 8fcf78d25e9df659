//go:build unix

package provider_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// cloud is a provider with the cloud resources that listings use. A stand-in serves its clusters.
type cloud struct {
	name     string
	clusters *cloudClusters
}

// cloudClusters is the address of the stand-in for clusters, with credentials.
type cloudClusters struct{ url, ca, certificate, key string }

func newCloudClusters(t *testing.T) *cloudClusters {
	t.Helper()
	url, ca := (&standInCluster{}).start(t)
	certificate, key := kubetest.SelfSigned(t)
	return &cloudClusters{url, ca, certificate, key}
}

func (c *cloudClusters) kubeconfig(cluster string) string {
	return fmt.Sprintf(`{"current-context": %[1]q, "contexts": [{"name": %[1]q, "context": {"cluster": %[1]q, "user": %[1]q}}],
"clusters": [{"name": %[1]q, "cluster": {"server": %[2]q, "certificate-authority-data": %[3]q}}],
"users": [{"name": %[1]q, "user": {"token": "a-token"}}]}`, cluster, c.url+"/"+cluster, encodeBase64(c.ca))
}

func encodeBase64(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// cloudResource has arguments and blocks with text, and a map of tags.
type cloudResource struct {
	name      string
	arguments []string
	blocks    map[string][]string
	// computed returns the computed attributes: strings, and lists of maps of strings.
	computed func(name string, clusters *cloudClusters) map[string]any
	clusters *cloudClusters
}

func (c *cloud) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = c.name
}

func (c *cloud) Schema(context.Context, provider.SchemaRequest, *provider.SchemaResponse) {}

func (c *cloud) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}

func (c *cloud) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (c *cloud) Resources(context.Context) []func() resource.Resource {
	var all []func() resource.Resource
	for _, one := range cloudResources {
		if strings.HasPrefix(one.name, c.name+"_") {
			one.clusters = c.clusters
			all = append(all, func() resource.Resource { return &one })
		}
	}
	return all
}

var cloudResources = []cloudResource{
	{name: "azurerm_resource_group", arguments: []string{"name", "location"}},
	{
		name: "azurerm_kubernetes_cluster", arguments: []string{"name", "location", "resource_group_name", "dns_prefix", "kubernetes_version"},
		blocks: map[string][]string{"default_node_pool": {"name", "vm_size", "node_count"}, "identity": {"type"}},
		computed: func(name string, c *cloudClusters) map[string]any {
			return map[string]any{"kube_config": []map[string]string{{
				"host": c.url + "/" + name, "cluster_ca_certificate": encodeBase64(c.ca),
				"client_certificate": encodeBase64(c.certificate), "client_key": encodeBase64(c.key),
			}}}
		},
	},
	{
		name: "azurerm_arc_kubernetes_cluster", arguments: []string{"name"},
		computed: func(name string, _ *cloudClusters) map[string]any {
			return map[string]any{"id": "/connectedClusters/" + name}
		},
	},
	{name: "azapi_resource", arguments: []string{"type", "name", "parent_id", "body"}},
	{
		name: "aws_eks_cluster", arguments: []string{"name"},
		computed: func(name string, c *cloudClusters) map[string]any {
			return map[string]any{"endpoint": c.url + "/" + name, "certificate_authority": []map[string]string{{"data": encodeBase64(c.ca)}}}
		},
	},
	{name: "aws_eks_node_group", arguments: []string{"cluster_name"}},
	{
		name: "aws_iam_role", arguments: []string{"name"},
		computed: func(name string, _ *cloudClusters) map[string]any {
			return map[string]any{"arn": "arn:aws:iam::1:role/" + name}
		},
	},
	{
		name: "google_container_cluster", arguments: []string{"name"},
		computed: func(name string, c *cloudClusters) map[string]any {
			return map[string]any{
				"endpoint":    strings.TrimPrefix(c.url, "https://") + "/" + name,
				"master_auth": []map[string]string{{"cluster_ca_certificate": encodeBase64(c.ca)}},
			}
		},
	},
}

func (r *cloudResource) Metadata(_ context.Context, _ resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = r.name
}

func (r *cloudResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	optional := func(names []string) map[string]schema.Attribute {
		attributes := map[string]schema.Attribute{}
		for _, name := range names {
			attributes[name] = schema.StringAttribute{Optional: true}
			if name == "body" {
				attributes[name] = schema.DynamicAttribute{Optional: true}
			}
		}
		return attributes
	}
	resp.Schema = schema.Schema{Attributes: optional(r.arguments), Blocks: map[string]schema.Block{}}
	resp.Schema.Attributes["tags"] = schema.MapAttribute{Optional: true, ElementType: types.StringType}
	for name, arguments := range r.blocks {
		resp.Schema.Blocks[name] = schema.ListNestedBlock{NestedObject: schema.NestedBlockObject{Attributes: optional(arguments)}}
	}
	for name, value := range r.values("x") {
		if _, isString := value.(string); isString {
			resp.Schema.Attributes[name] = schema.StringAttribute{Computed: true}
		} else {
			resp.Schema.Attributes[name] = schema.ListAttribute{Computed: true, ElementType: types.MapType{ElemType: types.StringType}}
		}
	}
}

func (r *cloudResource) values(name string) map[string]any {
	if r.computed == nil {
		return nil
	}
	return r.computed(name, r.clusters)
}

func (r *cloudResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	resp.State.Raw = req.Plan.Raw
	if r.computed == nil {
		return
	}
	var name string
	resp.Diagnostics.Append(req.Plan.GetAttribute(ctx, path.Root("name"), &name)...)
	for attribute, value := range r.values(name) {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(attribute), value)...)
	}
}

func (r *cloudResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

func (r *cloudResource) Update(_ context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

func (r *cloudResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
