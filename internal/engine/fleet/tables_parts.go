package fleet

import (
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
)

// The tables of objects inside of the fleet's kinds.

var locationTable = Table{
	Name:    "location",
	Meaning: "A folder on a branch of a GitOps repository.",
	Attributes: []Attribute{
		{
			Name:     "url",
			Required: true,
			Meaning:  "URL of the repository: http(s), ssh, a local path (`~/` is your home directory) or `file://`, without credentials.",
		},
		{Name: "branch", Required: true, Meaning: "Name of the branch."},
		{Name: "path", Meaning: "Folder of the repository. Unset: its root."},
	},
}

var selectorTable = Table{
	Name: "selector",
	Meaning: "Selects objects by their labels. All that it says must hold, and `{}` matches everything. Where a selector is not set, " +
		"nothing is asked of the labels that it would select by.",
	Attributes: []Attribute{
		{Name: "match_labels", Type: TextMapType, Keys: labelKeyForm, Form: labelValueForm, Meaning: "Labels with exactly these values."},
		{Name: "match_expressions", Type: ObjectsType, Of: &expressionTable, Meaning: "Requirements, as in Kubernetes."},
		{Name: "expression", Meaning: "Requirements in Kubernetes' string form: `region in (us-west, jp), !restricted`."},
	},
}

var expressionTable = Table{
	Name:    "requirement of a selector",
	Meaning: "One requirement on one label.",
	Attributes: []Attribute{
		{Name: "key", Required: true, Form: labelKeyForm, Meaning: "Key of the label."},
		{Name: "operator", Required: true, Allowed: slices.Sorted(maps.Keys(selectorOperators)), Meaning: "How the label is compared."},
		{Name: "values", Type: TextsType, Form: labelValueForm, EmptyElements: true, Meaning: "Values of the label, for `In` and `NotIn`."},
	},
}

var deploymentTargetTable = Table{
	Name:    "deployment target",
	Meaning: "One way a workload is deployed in one environment. Its name is its key in `deployment_targets`, a DNS label.",
	Attributes: []Attribute{
		{Name: "environment", Required: true, Form: labelForm, Meaning: "Name of the environment that it belongs to."},
		labelsAttribute,
		{
			Name: "namespace",
			Form: labelForm,
			Meaning: "Where it runs, on each of its hosts. Unset: `<environment>-<host>-<deployment target>`. Deployment targets that set the " +
				"same one share it, " +
				"and it stays when they go; those of agents, such as `flux-system`, and of Kubernetes cannot be set.",
		},
		{Name: "manifests", Type: ObjectType, Required: true, Of: &manifestsTable, Meaning: "Where the workload's own manifests are."},
		{
			Name:    "config_as",
			Type:    TextsType,
			Default: []string{"configmap"},
			Meaning: "The forms in which it gets its configuration: `configmap` (`configmap:<name>` gives it another name), " +
				"`values` (among a chart's values; `values:<key>` below a key), `substitute` (Flux substitutes it for variables) and `secret` (the " +
				"Secret of references to secrets, " +
				"which is there with `configmap`, too; `secret:<name>` gives it another name).",
		},
		{
			Name:    "render",
			Allowed: Renderings,
			Meaning: "How far its manifests are rendered. It may be stronger than `render` of a cluster type that it goes to; " +
				"a weaker one is an error unless `least_render` of the workspace allows it. Unset: as the cluster type says.",
		},
		{
			Name: "allow_plain",
			Type: TextsType,
			Meaning: "Names of values that may look like a credential, as the errors and warnings about them give them: in its parameters, " +
				"`parameters.helm_release.values.password`; in files of custom templates and in final objects, `<kind>.<path>`, such as " +
				"`ConfigMap.data.password`. Without it such a value is an error, " +
				"and in the final objects of a preview a warning.",
		},
		{Name: "config_schema", Type: SchemaType, Meaning: "JSON Schema that its values must satisfy: its text, or the object."},
	},
}

var manifestsTable = Table{
	Name:    "manifests",
	Meaning: "Where a workload's own manifests are, and how they are rendered.",
	Apart:   [][2]string{{"tag", "branch"}, {"tag", "commit"}, {"tag", "version"}},
	Attributes: []Attribute{
		{
			Name:    "storage",
			Default: Storages[0],
			Allowed: Storages,
			Meaning: "Where they are: in a Git repository, in a chart repository, or as an OCI artifact.",
		},
		{Name: "repo", Required: true, Meaning: "URL of the repository, without credentials."},
		{Name: "branch", Meaning: "Branch, for `git`."},
		{Name: "tag", Meaning: "Tag, for `git` and `oci`, in place of `branch`, `commit` and `version`."},
		{Name: "commit", Meaning: "Commit, for `git`."},
		{Name: "path", Meaning: "Path in the repository or artifact, for `git` and `oci`."},
		{Name: "chart", Meaning: "Name of the chart, for `helm`, which requires it, and `oci`."},
		{Name: "version", Meaning: "Version of the chart or artifact, or a range of versions, for `helm` and `oci`."},
		{
			Name: "digest",
			Meaning: "Digest of the artifact, `sha256:…`, for `oci`: the content never changes. A chart needs its exact `version` or " +
				"its `tag`, too.",
		},
		{Name: "type", Allowed: ManifestTypes, Meaning: "`helm` for a chart, `kustomize` for a kustomization or plain manifests. " +
			"Only a chart that is in Git, or at the `repo` of an OCI artifact, needs it. Unset: `helm` with `storage = \"helm\"` or `chart`, else " +
			"`kustomize`."},
		{Name: "parameters", Type: AnyObjectType, Meaning: "They reach every field of what is rendered: see the guide \"What is rendered\"."},
	},
}

var limitTable = Table{
	Name:    "limit",
	Meaning: "One limit of a LimitRange, by resources such as `cpu`.",
	Attributes: []Attribute{
		{Name: "type", Default: LimitTypes[0], Allowed: LimitTypes, Meaning: "The kind of objects that are limited."},
		{Name: "default", Type: QuantitiesType, NullElements: true, Meaning: "Limits of containers that set none, for `Container`."},
		{Name: "default_request", Type: QuantitiesType, NullElements: true, Meaning: "Requests of containers that set none, for `Container`."},
		{Name: "max", Type: QuantitiesType, NullElements: true, Meaning: "The most that one may ask for."},
		{Name: "min", Type: QuantitiesType, NullElements: true, Meaning: "The least that one may ask for."},
		{Name: "max_limit_request_ratio", Type: QuantitiesType, NullElements: true, Meaning: "How many times its request a limit may be."},
	},
}

var argocdProjectTable = Table{
	Name:    "Argo CD project",
	Meaning: "The Argo CD project of a workspace.",
	Attributes: []Attribute{
		nameAttribute(subdomainForm, "Name of the project, a DNS subdomain."),
		{Name: "render", Type: BoolType, Default: false, Meaning: "Flotilla writes the AppProject, too."},
	},
}

var secretStoreTable = Table{
	Name:    "secret store",
	Meaning: "A store of secrets, as the clusters of a cluster type have it.",
	Attributes: []Attribute{
		{Name: "name", Form: subdomainForm, Meaning: "For `external-secrets`, name of the store's object. Unset: the name that references use."},
		{
			Name:    "kind",
			Default: secretservice.ClusterStore,
			Allowed: []string{secretservice.ClusterStore, secretservice.NamespacedStore},
			Meaning: "For `external-secrets`, kind of the store's object.",
		},
		{Name: "provider", Meaning: "For `secrets-store-csi`, the provider of a SecretProviderClass."},
		{Name: "parameters", Type: TextMapType, NullElements: true, Meaning: "For `secrets-store-csi`, the parameters of a SecretProviderClass."},
	},
}

var decryptionTable = Table{
	Name:    "decryption",
	Meaning: "How an agent decrypts files that SOPS has encrypted.",
	Attributes: []Attribute{
		{Name: "secret", Form: subdomainForm, Meaning: "Name of the Secret with the keys, in the agent's namespace."},
		{Name: "service_account", Form: subdomainForm, Meaning: "Service account that may use the keys of a cloud. Unset: the agent's own."},
	},
}

var secretReferenceTable = Table{
	Name:    "reference to a secret",
	Meaning: "Names a secret in a store. The secret itself is not read.",
	Attributes: []Attribute{
		{Name: "store", Required: true, Form: labelForm, Meaning: "One of the `secret_stores` of the cluster types that the container reaches."},
		{Name: "key", Required: true, Meaning: "The secret's name in the store. It has no `.` or `..` between slashes."},
		{Name: "property", Meaning: "A part of the secret, where the store has such."},
		{Name: "version", Meaning: "One of the secret's versions, where the store has such. Unset: the newest."},
	},
}

var matchTable = Table{
	Name:    "match of a constraint",
	Meaning: "The scope of a rule: all that meets each attribute.",
	Attributes: []Attribute{
		{Name: "workspace", Meaning: "Only what belongs to this workspace."},
		workloadSelector,
		targetSelector,
		clusterTypeSelector,
		clusterSelector,
		{Name: "kinds", Type: TextsType, Meaning: "Kinds of rendered documents, such as `\"Deployment\"` or `\"apps/Deployment\"`."},
	},
}

var hydrationTable = Table{
	Name:    "hydration",
	Meaning: "How config containers merge.",
	Attributes: []Attribute{
		{
			Name:    "precedence",
			Default: "specificity",
			Allowed: []string{"specificity", "name"},
			Meaning: "It decides between containers of equal priority. `specificity`: the number of labels, then the name; `name`: the name alone.",
		},
		{
			Name:    "on_conflict",
			Default: "error",
			Allowed: []string{"error", "warn", "override"},
			Meaning: "It applies where nothing but the name decides between containers that disagree: an error, a warning, or with `override` " +
				"neither, and the name decides.",
		},
		{
			Name:    "lists",
			Default: "replace",
			Allowed: []string{"replace", "append", "merge"},
			Meaning: "`replace`: the later list takes the place of the earlier; `append`: it is added to it; `merge`: objects with the same " +
				"`list_key` are merged, and all else is added.",
		},
		{Name: "list_key", Default: "name", Meaning: "The key that tells objects in lists apart, for `merge`."},
	},
}

var baseTable = Table{
	Name:    "base fleet",
	Meaning: "A fleet that `provider::flotilla::fleet` or `control_plane` returned.",
	Attributes: []Attribute{
		{Name: "format", Meaning: "The version of this format."},
		{Name: "environment", Required: true, Meaning: "Name of the environment."},
		{Name: "model", Required: true, Meaning: "All that decides who goes where, as JSON."},
		{Name: "config", Type: ObjectType, Required: true, Of: &entriesTable, Meaning: "Configuration values."},
		{Name: "manifests", Type: ObjectType, Required: true, Of: &entriesTable, Meaning: "Manifests of deployment targets."},
		{Name: "constraints", Type: ObjectType, Of: &entriesTable, Meaning: "Rules."},
	},
}

var entriesTable = Table{
	Name:    "entries of a base fleet",
	Meaning: "Entries of a base fleet by name.",
	Attributes: []Attribute{
		{Name: "known", Required: true, Meaning: "Those that are known, as JSON."},
		{Name: "pending", Type: AnyObjectType, Meaning: "Those that are not known yet."},
	},
}
