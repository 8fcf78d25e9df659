package stateonly

import (
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/schemas"
	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
)

// ClusterType returns the resource.
var ClusterType = newResource(Object{
	Name:       "cluster_type",
	collection: "cluster_types",
	Schema: schema.Schema{
		Description: "cluster type",
		MarkdownDescription: "A set of clusters that run the same workloads with the same values: one folder in the GitOps repository, " +
			"perhaps thousands of clusters.",
		Attributes: map[string]schema.Attribute{
			"name":        schemas.NameAttribute("Name of the cluster type, a DNS label; also its folder."),
			"environment": schemas.EnvironmentAttribute(false),
			"labels":      schemas.LabelsAttribute(),
			"taints":      schemas.TaintsAttribute(),
			"reconciler": schemas.DefaultAttribute(fleet.DefaultReconciler,
				"Name of the template of type `reconciler`: built in are `"+strings.Join(reconciler.Names(), "`, `")+"`."),
			"namespace_service": schemas.DefaultAttribute(fleet.DefaultNamespaceService, "Name of the template of type `namespace`."),
			"config_type": schemas.DefaultAttribute(fleet.DefaultConfigType,
				"Name of the template of type `config`: built in are `configmap`, `json`, `env`, `properties` and `symphony`."),
			"parameters": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "Parameters of everything that its templates render, as in the `manifests` of a deployment target, " +
					"which are merged over these: see the guide \"What is rendered\".",
			},
			"secret_service": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "Name of the template of type `secret`, which brings the secrets that config containers refer to: built in are `" +
					strings.Join(fleet.BuiltinTemplates["secret"], "` and `") + "`. Unset: such references are an error.",
			},
			"secret_stores": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "The stores of secrets that its clusters have, by the names that references use: `{vault = {name = \"vault-east\"}}`. For `external-secrets`, `name` and " +
					"`kind` are those of the store's object, by default the same name and `ClusterSecretStore`; the other kind is `SecretStore`. For `secrets-store-csi`, `provider` and " +
					"`parameters`, a map of texts, are those of a SecretProviderClass.",
			},
			"decryption": schema.DynamicAttribute{
				Optional: true,
				MarkdownDescription: "How its agent decrypts files that SOPS has encrypted, which Flux can: `{secret, service_account}`. `secret` is the Secret with the keys in the agent's namespace, " +
					"and `service_account` one that may use the keys of a cloud; `{}` where the agent has its keys already.",
			},
			"render": schema.StringAttribute{
				Optional: true,
				MarkdownDescription: "How far the manifests of its deployment targets are rendered: `pointers` (default) not at all, the reconciler's objects point to them; `preview` at plan, " +
					"for constraints and `flotilla_manifests`: see the guide [Rendering](../guides/rendering.md). A deployment target that has `render` decides for itself.",
			},
			"kubernetes_version": schema.StringAttribute{
				Optional:            true,
				MarkdownDescription: "Version of Kubernetes of its clusters, `\"1.34\"` or `\"v1.34.2\"`, which charts are rendered for.",
			},
			"api_versions": schemas.NamesAttribute("API versions that its clusters have beside those of Kubernetes, which charts are rendered for: `<group>/<version>` or `<group>/<version>/<kind>`."),
			"description":  schemas.DescriptionAttribute(),
		},
	},
})
