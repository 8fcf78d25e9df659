package fleet

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// The tables of the fleet's kinds.

var fleetTable = Table{
	Name:    "fleet",
	Meaning: "Everything of one environment: the argument of `provider::flotilla::fleet`. Objects of other environments are left out.",
	Apart:   [][2]string{{"assignments", "target_policies"}},
	Attributes: []Attribute{
		{Name: "environment", Required: true, Form: labelForm, Meaning: "Name of the environment, a DNS label."},
		{
			Name:    "environments",
			Type:    NamesOrObjectsType,
			Of:      &environmentTable,
			Meaning: "Names of all environments, or environments. With it, a name that is not among them is an error.",
		},
		{Name: "workspaces", Type: CollectionType, Of: &workspaceTable, Meaning: "The teams."},
		{Name: "cluster_types", Type: CollectionType, Of: &clusterTypeTable, Meaning: "The sets of clusters that run the same."},
		{Name: "clusters", Type: CollectionType, Of: &clusterTable, Meaning: "The physical clusters."},
		{
			Name:    "workloads",
			Type:    CollectionType,
			Of:      &workloadTable,
			Meaning: "Applications and platform services, with their deployment targets.",
		},
		{
			Name:    "target_policies",
			Type:    CollectionType,
			Of:      &targetPolicies.Table,
			Meaning: "They decide which deployment target goes to which hosts.",
		},
		{
			Name:    "assignments",
			Type:    CollectionType,
			Of:      &explicitTable,
			Meaning: "Assignments in place of `target_policies`. Where it is set, even to an empty list, there is no scheduling.",
		},
		{Name: "config_containers", Type: CollectionType, Of: &containerTable, Meaning: "Configuration values of the platform."},
		{Name: "config_schemas", Type: CollectionType, Of: &configSchemaTable, Meaning: "JSON Schemas that values must satisfy."},
		{Name: "templates", Type: CollectionType, Of: &templateTable, Meaning: "Templates beside those that are built in."},
		{Name: "constraints", Type: CollectionType, Of: &constraintTable, Meaning: "Rules about assignments and what is rendered."},
		{
			Name:    "hydration",
			Type:    ObjectType,
			Of:      &hydrationTable,
			Meaning: "How config containers merge: see the guide \"Configuration, explained\".",
		},
		{
			Name: "artifacts",
			Meaning: "The text that `flotilla_artifacts` has as `artifacts`, for the same `workloads`: the manifests of the deployment " +
				"targets in it " +
				"are pinned to a commit, or to a version and a digest. While it is unknown, all of `manifests` is pending.",
		},
		{Name: "base", Type: ObjectType, Of: &baseTable, Meaning: "A fleet to add to, such as one that `control_plane` returned."},
	},
}

// Attributes of several kinds.
var (
	labelsAttribute = Attribute{Name: "labels", Type: TextMapType, Keys: labelKeyForm, Form: labelValueForm, NullElements: true,
		Meaning: "Kubernetes labels, a map of texts, which selectors and config containers match. Numbers and bools must be in quotes."}
	descriptionAttribute = Attribute{Name: "description", Meaning: "Description for people; nothing is computed from it."}
	environmentAttribute = Attribute{
		Name:    "environment",
		Form:    labelForm,
		Meaning: "Name of the environment that it belongs to. Unset: every environment.",
	}
	taintsAttribute = Attribute{
		Name:    "taints",
		Type:    ObjectsType,
		Of:      &taintKind.Table,
		Meaning: "They keep deployment targets away unless their policy tolerates them, by Kubernetes' rules.",
	}
	workloadSelector = selectorAttribute("workload_selector", "Only deployment targets of workloads with matching labels.")
	targetSelector   = selectorAttribute(
		"deployment_target_selector",
		"Only deployment targets with matching labels: their own and their workload's, their own winning.",
	)
	clusterTypeSelector = selectorAttribute("cluster_type_selector", "Cluster types with matching labels.")
	clusterSelector     = selectorAttribute(
		"cluster_selector",
		"Clusters with matching labels: their own and their type's, their own winning.",
	)
)

func selectorAttribute(name, meaning string) Attribute {
	return Attribute{Name: name, Type: ObjectType, Of: &selectorTable, Meaning: meaning}
}

func nameAttribute(form *Form, meaning string) Attribute {
	return Attribute{Name: "name", Required: true, Form: form, Meaning: meaning}
}

func inMarkdown(texts []string) string { return "`" + strings.Join(texts, "`, `") + "`" }

var environmentTable = Table{
	Name:    "environment",
	Meaning: "A stage of the chain: dev, stage, prod. It names a location in a GitOps repository.",
	Attributes: []Attribute{
		nameAttribute(labelForm, "Name of the environment, a DNS label."),
		labelsAttribute,
		descriptionAttribute,
		{
			Name:    "gitops_repo",
			Type:    ObjectType,
			Of:      &locationTable,
			Meaning: "Where the environment is delivered to. `flotilla_environment` requires it.",
		},
	},
}

var workspaceTable = Table{
	Name: "workspace",
	Meaning: "A team: its workloads, the groups that may use its namespaces, its quota. The template of type `policy` " +
		"renders role bindings, quota and network policy into every namespace of the team.",
	Attributes: []Attribute{
		nameAttribute(labelForm, "Name of the workspace, a DNS label."),
		{Name: "contributor_groups", Type: TextsType, Meaning: "Groups that may change objects in the team's namespaces."},
		{Name: "reader_groups", Type: TextsType, Meaning: "Groups that may read objects in the team's namespaces."},
		{Name: "environments", Type: TextsType, Meaning: "Environments that the team may deploy to. Unset: all."},
		{
			Name:         "resource_quota",
			Type:         QuantitiesType,
			NullElements: true,
			Meaning:      "Hard limits of each namespace, as in a ResourceQuota: `{\"requests.cpu\" = \"2\"}`.",
		},
		{Name: "limit_range", Type: ObjectsType, Of: &limitTable, Meaning: "Limits of what runs in each namespace, as in a LimitRange."},
		{
			Name:    "network_policy",
			Default: "none",
			Allowed: []string{"none", "isolated"},
			Meaning: "`isolated` lets in traffic from the team's own namespaces alone, those with the label " +
				"`workspace`; `none` does nothing.",
		},
		{
			Name: "service_account",
			Form: subdomainForm,
			Meaning: "Service account that Flux impersonates when it reconciles the team's workloads, in the namespace `flux-system`; " +
				"for Rancher Fleet that of the cluster's agent. With Config Sync, which has no such account, they may do no more than the cluster " +
				"role `admin` in their namespace. " +
				"Unset: they have the rights of the reconciler.",
		},
		{
			Name: "argocd_project",
			Form: subdomainForm,
			Type: TextOrObjectType,
			Of:   &argocdProjectTable,
			Meaning: "Argo CD project of the team's Applications: its name, or `{name, render}`. With `render = true` Flotilla writes the " +
				"AppProject too, which allows the sources and namespaces of the team's own deployment targets and no others. Unset: `default`.",
		},
		{
			Name: "secrets",
			Type: TextsType,
			Form: subdomainForm,
			Meaning: "Names of the Secrets and ConfigMaps, in the namespace of the reconciler's objects, that the team's workloads may name " +
				"in their parameters. No other workspace's workloads can name them then.",
		},
		{
			Name:    "sources",
			Type:    TextsType,
			Meaning: "Beginnings of URLs, such as `https://git.example.com/team`, that the team's manifests come from. Unset: any.",
		},
		{
			Name: "parameters",
			Type: TextsType,
			Meaning: "Paths of fields, such as `helm_release.valuesFrom`, that the team's workloads may set although they reach " +
				"Secrets, accounts, clusters, namespaces or other content, or decide what is trusted; or `namespace`, `project`, `secret_ref`. With " +
				"this, `secrets`, `sources`, " +
				"`service_account` or a project that is rendered, all that is not allowed so is an error at plan. Fields that decide what is " +
				"trusted, such as `git_repository.verify`, always are.",
		},
		{
			Name:    "least_render",
			Allowed: weakerRenderings,
			Meaning: "The weakest `render` that the team's deployment targets may set on hosts whose cluster type has a " +
				"stronger one; they then escape rules for final objects. Unset: `render` of a cluster type can be strengthened only.",
		},
		labelsAttribute,
	},
}

var clusterTypeTable = Table{
	Name: "cluster type",
	Meaning: "A set of clusters that run the same workloads with the same values: one folder in the GitOps repository, perhaps " +
		"thousands of clusters.",
	Attributes: []Attribute{
		nameAttribute(labelForm, "Name of the cluster type, a DNS label; also its folder."),
		{
			Name:    "formerly",
			Type:    TextsType,
			Ordered: true,
			Form:    labelForm,
			Meaning: "The names that it had before, the first one first: its folders move, and nothing on its clusters goes. Names that are made " +
				"of it keep " +
				"the first one, so that `formerly` stays as long as the cluster type: see the guide \"Assignments\".",
		},
		environmentAttribute,
		labelsAttribute,
		taintsAttribute,
		{
			Name:    "reconciler",
			Default: DefaultReconciler,
			Meaning: "Name of the template of type `reconciler`: built in are " + inMarkdown(reconciler.Names()) + ".",
		},
		{Name: "namespace_service", Default: DefaultNamespaceService, Meaning: "Name of the template of type `namespace`."},
		{
			Name:    "config_type",
			Default: DefaultConfigType,
			Meaning: "Name of the template of type `config`: built in are " + inMarkdown(BuiltinTemplates["config"]) + ".",
		},
		{
			Name: "parameters",
			Type: AnyObjectType,
			Meaning: "Parameters of everything that its templates render, as in the `manifests` of a deployment target, " +
				"which are merged over these: see the guide \"What is rendered\".",
		},
		{
			Name: "allow_plain",
			Type: TextsType,
			Meaning: "Names of values in `parameters`, `secret_stores` and `description` that may look like a credential, as the error " +
				"about them gives " +
				"them: `parameters.helm_release.values.password`. Without it such a value is an error.",
		},
		{
			Name: "secret_service",
			Meaning: "Name of the template of type `secret`, which brings the secrets that config containers refer to: built in are " +
				inMarkdown(BuiltinTemplates["secret"]) + ". Unset: such references are an error.",
		},
		{
			Name:    "secret_stores",
			Type:    ObjectMapType,
			Keys:    labelForm,
			Of:      &secretStoreTable,
			Meaning: "The stores of secrets that its clusters have, by the names that references use: `{vault = {name = \"vault-east\"}}`.",
		},
		{
			Name: "decryption",
			Type: ObjectType,
			Of:   &decryptionTable,
			Meaning: "How its agent decrypts files that SOPS has encrypted, which Flux can; `{}` where the agent has its keys already. " +
				"Unset: it does not.",
		},
		{
			Name:    "render",
			Allowed: Renderings,
			Meaning: "How far the manifests of its deployment targets are rendered: `pointers` not at all, the reconciler's objects point to " +
				"them; `preview` at plan, " +
				"for constraints and `flotilla_manifests`; `objects`, too, and its folder has the final objects in place of what points to them: " +
				"see the guide \"Rendering\". A deployment target may set a stronger `render`, " +
				"and a weaker one only as far as `least_render` of its workspace allows. Unset: `pointers`.",
		},
		{
			Name:    "kubernetes_version",
			Form:    kubernetesVersionForm,
			Meaning: "Version of Kubernetes of its clusters, `\"1.34\"`, `\"v1.34.2\"` or `\"v1.34.2+k3s1\"`, which charts are rendered for.",
		},
		{
			Name: "api_versions",
			Form: apiVersionForm,
			Type: TextsType,
			Meaning: "API versions that its clusters have beside those that Kubernetes serves by default, which charts are rendered for: " +
				"`<group>/<version>` or `<group>/<version>/<kind>`.",
		},
		descriptionAttribute,
	},
}

var clusterTable = Table{
	Name: "cluster",
	Meaning: "One physical cluster of one cluster type, with labels of its own. A target policy with a `cluster_selector` " +
		"assigns to single clusters, whose folders are `clusters/<cluster>`.",
	Attributes: []Attribute{
		nameAttribute(labelForm, "Name of the cluster, a DNS label."),
		environmentAttribute,
		{Name: "cluster_type", Required: true, Meaning: "Name of its cluster type, whose labels it has too, its own winning."},
		labelsAttribute,
		taintsAttribute,
		descriptionAttribute,
	},
}

var workloadTable = Table{
	Name:    "workload",
	Meaning: "An application or a platform service, owned by a workspace, with its deployment targets in every environment.",
	Attributes: []Attribute{
		nameAttribute(labelForm, "Name of the workload, a DNS label."),
		{Name: "workspace", Required: true, Meaning: "Name of the workspace that owns it."},
		labelsAttribute,
		{Name: "requires", Type: TextsType, Meaning: "Names of workloads that must run on every host that this one runs on."},
		{
			Name:    "deployment_targets",
			Type:    ObjectMapType,
			Keys:    labelForm,
			Of:      &deploymentTargetTable,
			Meaning: "Deployment targets by name; the full name of one is `<workload>-<target>`, at most 63 characters.",
		},
	},
}

var explicitTable = Table{
	Name:    "assignment",
	Meaning: "One deployment target on one host: a cluster type, or a cluster.",
	Some:    []string{"cluster_type", "cluster"}, One: true,
	Attributes: []Attribute{
		{Name: "cluster_type", Meaning: "Name of the cluster type that it goes to."},
		{Name: "cluster", Meaning: "Name of the cluster that it goes to."},
		{Name: "deployment_target", Required: true, Meaning: "Full name of the deployment target, `<workload>-<target>`."},
	},
}

var containerTable = Table{
	Name: "config container",
	Meaning: "Labelled configuration values of the platform. A container reaches every assignment that has all of its " +
		"labels, on the host or on the deployment target; the labels `environment`, `workspace`, `workload`, `deployment-target`, " +
		"`cluster-type` and `cluster` are labels of every assignment.",
	Some: []string{"data", "secrets", "encrypted"},
	Attributes: []Attribute{
		nameAttribute(subdomainForm, "Name of the container, a DNS subdomain."),
		environmentAttribute,
		labelsAttribute,
		{
			Name: "data",
			Type: AnyObjectType,
			Meaning: "An object of any shape. Types are kept; `null` removes a key that another container gives. Required unless `secrets` or " +
				"`encrypted` is given.",
		},
		{
			Name:         "secrets",
			Type:         ObjectMapType,
			Of:           &secretReferenceTable,
			NullElements: true,
			Meaning: "References to secrets in stores, by key: " +
				"`{DB_PASSWORD = {store = \"vault\", key = \"prod/db\", property = \"password\", version = \"3\"}}`. References merge as `data` " +
				"do and " +
				"share its keys: a key is either a value or a " +
				"secret. `null` removes a key that another container gives. The secret itself is not read, so it is in no plan and no state.",
		},
		{
			Name: "encrypted",
			Type: TextsType,
			Meaning: "Encrypted files, such as `[file(\"db.sops.yaml\")]`: each is one YAML document, a Secret that SOPS has encrypted or a " +
				"SealedSecret, of " +
				"1 MiB at most. They are copied as they are to the folders of the assignments that the container reaches.",
		},
		{
			Name: "allow_plain",
			Type: TextsType,
			Meaning: "Names of values in `data` that may look like a credential, as the error about them gives them: `KEY`, or `DB.PASSWORD` for " +
				"a member of an " +
				"object. Without it such a value is an error, since values are committed as they are.",
		},
		{
			Name:    "priority",
			Type:    NumberType,
			Default: 0,
			Meaning: "Where containers disagree, the higher priority wins. The guide \"Configuration, explained\" has the whole order.",
		},
		{Name: "json", Computed: true, Meaning: "Canonical JSON of `data`; `{}` without."},
	},
}

var configSchemaTable = Table{
	Name:    "config schema",
	Meaning: "A JSON Schema that the values of every assignment with its labels must satisfy.",
	Attributes: []Attribute{
		nameAttribute(subdomainForm, "Name of the schema, a DNS subdomain."),
		environmentAttribute,
		labelsAttribute,
		{
			Name:     "schema",
			Type:     SchemaType,
			Required: true,
			Meaning: "Text of the JSON Schema, of draft 4 to 2020-12; in a fleet written by hand also the object. Nothing is fetched for it: " +
				"a remote `$ref` is an error. It may have up to 4,000 objects and booleans.",
		},
	},
}

var templateTable = Table{
	Name: "template",
	Meaning: "Go templates that turn an assignment into a file: `reconciler.yaml`, `namespace.yaml`, `platform-config.yaml`, " +
		"`platform-secrets.yaml` " +
		"or `policy.yaml`. One of the same type and name as a built-in template replaces it.",
	Attributes: []Attribute{
		nameAttribute(subdomainForm, "Name of the template, a DNS subdomain."),
		{Name: "type", Required: true, Allowed: TemplateTypes, Meaning: "Which file it makes."},
		{Name: "content_type", Default: ContentTypes[0], Allowed: ContentTypes, Meaning: "Decides the file's name and how it is checked."},
		{
			Name:     "manifests",
			Type:     TextsType,
			Ordered:  true,
			Required: true,
			Meaning:  "Texts of Go templates with sprig's functions, joined as YAML documents.",
		},
	},
}

var constraintTable = Table{
	Name: "constraint",
	Meaning: "A rule about assignments, about what they are made of, and about what is rendered for them, in " +
		"[CEL](https://cel.dev), as a Kubernetes ValidatingAdmissionPolicy has it. A fleet takes it by its key `constraints`. The " +
		"plan of a `flotilla_assignment` looks at everything that the fleet wants: a violation of an enforced rule is an error before " +
		"anything is written, one of a rule that informs is a line in `changes`. The data source `flotilla_scheduling` has the " +
		"results of all rules, those that hold included.",
	Attributes: []Attribute{
		nameAttribute(subdomainForm, "Name of the constraint, a DNS subdomain."),
		environmentAttribute,
		{
			Name:     "expression",
			Required: true,
			Meaning: "CEL that is true where the rule is kept. The variables that it uses say what it is evaluated over: " +
				"`object`, each rendered document; `assignment` or `config`, each assignment; `host`, each host; `target`, each deployment " +
				"target; `workspace`, each workspace; `environment` alone, the fleet. It is compiled and type-checked at plan.",
		},
		{Name: "message", Meaning: "The message where the rule is violated: what is wrong and what to do. Unset: the expression."},
		{
			Name: "message_expression",
			Meaning: "CEL that makes the message, with the variables of `expression`. It wins over `message`, which is said where it " +
				"gives nothing. Plans, states and reports have what it says: let it say no secret.",
		},
		{
			Name:    "mode",
			Default: Enforce,
			Allowed: ConstraintModes,
			Meaning: "`enforce`: a violation fails the plan, and so does a rule that cannot be evaluated. " +
				"`inform`: a violation is only reported.",
		},
		{
			Name:    "match",
			Type:    ObjectType,
			Of:      &matchTable,
			Meaning: "The scope of the rule. All that it says must hold; unset, the rule looks at everything.",
		},
	},
}
