package fleet

import (
	"cmp"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
)

// ClusterType is a set of clusters with the same workloads and values.
type ClusterType struct {
	Name             string                 `json:"name"`
	Formerly         []string               `json:"formerly,omitempty"`
	Labels           Labels                 `json:"labels,omitempty"`
	Taints           []Taint                `json:"taints,omitempty"`
	Reconciler       string                 `json:"reconciler"`
	NamespaceService string                 `json:"namespace_service"`
	ConfigType       string                 `json:"config_type"`
	Description      string                 `json:"description,omitempty"`
	Parameters       map[string]any         `json:"parameters,omitempty"`
	SecretService    string                 `json:"secret_service,omitempty"`
	SecretStores     map[string]SecretStore `json:"secret_stores,omitempty"`
	Decryption       *Decryption            `json:"decryption,omitempty"`
	// Render may be empty for pointers.
	Render string `json:"render,omitempty"`
	// KubernetesVersion may be empty: the version of Helm's library. APIVersions are sorted.
	KubernetesVersion string   `json:"kubernetes_version,omitempty"`
	APIVersions       []string `json:"api_versions,omitempty"`
}

// SecretStore describes a store on the clusters of a cluster type.
type SecretStore = secretservice.Store

// Decryption configures SOPS decryption by an agent.
type Decryption struct {
	Secret         string `json:"secret,omitempty"`
	ServiceAccount string `json:"service_account,omitempty"`
}

var clusterTypeKind = defineKind(Table{
	Name: "cluster type",
	Meaning: "A set of clusters that run the same workloads with the same values: one folder in the GitOps repository, perhaps " +
		"thousands of clusters.",
}, func(c *ClusterType) []row {
	return []row{
		namedAttribute(&c.Name, labelForm, "Name of the cluster type, a DNS label; also its folder."),
		storedAttribute(&c.Formerly, Attribute{
			Type: TextsType, Ordered: true, Form: labelForm,
			Meaning: "The names that it had before, the first one first: its folders move, and nothing on its clusters is removed. Names on its " +
				"clusters keep the first one, so keep `formerly` as long as the cluster type exists: see the guide \"Rename, move, roll back, " +
				"uninstall\".",
		}, readTexts),
		unstoredAttribute(environmentAttribute),
		labelsAttribute(&c.Labels),
		taintsAttribute(&c.Taints),
		textAttribute(&c.Reconciler, Attribute{
			Default: DefaultReconciler,
			Meaning: "Name of the template of type `reconciler`: built in are " + inMarkdown(reconciler.Names()) + ".",
		}),
		textAttribute(&c.NamespaceService, Attribute{
			Default: DefaultNamespaceService, Meaning: "Name of the template of type `namespace`.",
		}),
		textAttribute(&c.ConfigType, Attribute{
			Default: DefaultConfigType,
			Meaning: "Name of the template of type `config`: built in are " + inMarkdown(BuiltinTemplates["config"]) + ".",
		}),
		objectOfAnyShape(&c.Parameters, Attribute{
			Meaning: "Parameters of everything that its templates render, as in the `manifests` of a deployment target, " +
				"which are merged over these: see the guide \"Reference: rendered files, parameters, templates\".",
		}),
		unstoredAttribute(Attribute{
			Name: "allow_plain", Type: TextsType,
			Meaning: "Names of values in `parameters`, `secret_stores` and `description` that may look like a credential, as the error " +
				"about them gives them: `parameters.helm_release.values.password`. Without it such a value is an error.",
		}),
		textAttribute(&c.SecretService, Attribute{
			Meaning: "Name of the template of type `secret`, which brings the secrets that config containers refer to: built in are " +
				inMarkdown(BuiltinTemplates["secret"]) + ". Unset: such references are an error.",
		}),
		storedAttribute(&c.SecretStores, Attribute{
			Type: ObjectMapType, Keys: labelForm, Of: &secretStoreKind.Table,
			Meaning: "The stores of secrets that its clusters have, by the names that references use: `{vault = {name = \"vault-east\"}}`.",
		}, readSecretStores),
		objectAttribute(&c.Decryption, decryptionKind, Attribute{
			Meaning: "How its agent decrypts files that SOPS has encrypted, which only Flux can; `{}` where the agent has its keys already. " +
				"Unset: it does not.",
		}),
		textAttribute(&c.Render, Attribute{
			Allowed: Renderings,
			Meaning: "How far the manifests of its deployment targets are rendered: `pointers` not at all, the reconciler's objects point to " +
				"them; `preview` at plan, for constraints and `flotilla_manifests`; `objects` at plan, too, and its folder has the final " +
				"objects in place of what points to them: see the guide \"Pins, rendering and rules\". A deployment target may set a " +
				"stronger `render`, and a weaker one only as far as `least_render` of its workspace allows. Unset: `pointers`.",
		}),
		textAttribute(&c.KubernetesVersion, Attribute{
			Form:    kubernetesVersionForm,
			Meaning: "Version of Kubernetes of its clusters, `\"1.34\"`, `\"v1.34.2\"` or `\"v1.34.2+k3s1\"`, which charts are rendered for.",
		}),
		textsAttribute(&c.APIVersions, Attribute{
			Form: apiVersionForm,
			Meaning: "API versions that its clusters have beside those that Kubernetes serves by default, which charts are rendered for: " +
				"`<group>/<version>` or `<group>/<version>/<kind>`.",
		}),
		textAttribute(&c.Description, descriptionAttribute),
	}
}).checkedBy(func(o *ObjectReader, c *ClusterType) {
	checkText(o, "name", c.Name, checkNotClusters)
	if c.Render == RenderPointers {
		c.Render = ""
	}
	if of := reconciler.Named(c.Reconciler); c.Decryption != nil && of != nil && of.NoSOPS != "" {
		o.Report("decryption", "cannot be set: %s", of.NoSOPS)
	}
})

var secretStoreKind = defineKind(Table{
	Name:    "secret store",
	Meaning: "A store of secrets, as the clusters of a cluster type have it.",
}, func(s *SecretStore) []row {
	return []row{
		textAttribute(&s.Name, Attribute{
			Form: subdomainForm, Meaning: "For `external-secrets`, name of the store's object. Unset: the name that references use.",
		}),
		choiceAttribute(&s.Kind, Attribute{
			Default: secretservice.ClusterStore, Allowed: []string{secretservice.ClusterStore, secretservice.NamespacedStore},
			Meaning: "For `external-secrets`, kind of the store's object.",
		}),
		textAttribute(&s.Provider, Attribute{Meaning: "For `secrets-store-csi`, the provider of a SecretProviderClass."}),
		storedAttribute(&s.Parameters, Attribute{
			Type: TextMapType, NullElements: true, Meaning: "For `secrets-store-csi`, the parameters of a SecretProviderClass.",
		}, readTextMap),
	}
}).checkedBy(func(o *ObjectReader, s *SecretStore) { checkShown(o, "provider", s.Provider) })

var decryptionKind = defineKind(Table{
	Name:    "decryption",
	Meaning: "How an agent decrypts files that SOPS has encrypted.",
}, func(d *Decryption) []row {
	return []row{
		textAttribute(&d.Secret, Attribute{Form: subdomainForm, Meaning: "Name of the Secret with the keys, in the agent's namespace."}),
		textAttribute(&d.ServiceAccount, Attribute{
			Form: subdomainForm, Meaning: "Service account that may use the keys of a cloud. Unset: the agent's own.",
		}),
	}
})

func decodeClusterType(d *decoder, o *ObjectReader) belonging {
	clusterType := clusterTypeKind.decode(o)
	allowed, allowedKnown := readAllowPlain(o, "allow_plain")
	belongs := keep(d, o, "cluster_types", &d.Fleet.ClusterTypes, clusterType, clusterType.Name)
	if belongs != notInEnvironment && allowedKnown {
		d.checkCommitted(o, allowed, "parameters")
		d.checkCommitted(o, allowed, "secret_stores")
		d.checkCommitted(o, allowed, "description")
	}
	if belongs == inEnvironment {
		d.noteFormerNames(o, &clusterType)
		d.refer(o.At("reconciler"), templatesOf("reconciler"), clusterType.Reconciler)
		d.refer(o.At("namespace_service"), templatesOf("namespace"), clusterType.NamespaceService)
		d.refer(o.At("config_type"), templatesOf("config"), clusterType.ConfigType)
		d.refer(o.At("secret_service"), templatesOf("secret"), clusterType.SecretService)
	}
	return belongs
}

func checkClusterTypeName(name string) string {
	return cmp.Or(checkNotClusters(name), labelForm.check(name))
}

func checkNotClusters(name string) string {
	if name == "clusters" {
		return `is the folder of all clusters in the GitOps repository: choose another name`
	}
	return ""
}

func readSecretStores(o *ObjectReader, attribute string) map[string]SecretStore {
	var stores map[string]SecretStore
	eachInMap(o, attribute, "objects by the fleet's names of stores", func(name string, path *Path, value any) {
		checkStoreName(o, path, name)
		if s := readChild(o, attribute, path, value); s != nil {
			if stores == nil {
				stores = map[string]SecretStore{}
			}
			stores[name] = secretStoreKind.decode(s)
			s.Finish()
		}
	})
	return stores
}

// Cluster is one physical cluster of one cluster type.
type Cluster struct {
	Name        string  `json:"name"`
	ClusterType string  `json:"cluster_type"`
	Labels      Labels  `json:"labels,omitempty"`
	Taints      []Taint `json:"taints,omitempty"`
	Description string  `json:"description,omitempty"`
}

var clusterKind = defineKind(Table{
	Name: "cluster",
	Meaning: "One physical cluster of one cluster type, with labels of its own. A target policy with a `cluster_selector` " +
		"assigns to single clusters, whose folders are `clusters/<cluster>`.",
}, func(c *Cluster) []row {
	return []row{
		namedAttribute(&c.Name, labelForm, "Name of the cluster, a DNS label."),
		unstoredAttribute(environmentAttribute),
		textAttribute(&c.ClusterType, Attribute{
			Required: true, Meaning: "Name of its cluster type, whose labels it has too, its own winning.",
		}),
		labelsAttribute(&c.Labels),
		taintsAttribute(&c.Taints),
		textAttribute(&c.Description, descriptionAttribute),
	}
})

func decodeCluster(d *decoder, o *ObjectReader) belonging {
	cluster := clusterKind.decode(o)
	belongs := keep(d, o, "clusters", &d.Fleet.Clusters, cluster, cluster.Name)
	if belongs == inEnvironment {
		d.refer(o.At("cluster_type"), "cluster_types", cluster.ClusterType)
	}
	return belongs
}

// FirstName returns the oldest name, which clusters keep: a rename removes nothing.
func (c *ClusterType) FirstName() string {
	if len(c.Formerly) > 0 {
		return c.Formerly[0]
	}
	return c.Name
}

// Renames maps former names of cluster types to current ones.
func (f *Fleet) Renames() map[string]string {
	renames := map[string]string{}
	for i := range f.ClusterTypes {
		for _, name := range f.ClusterTypes[i].Formerly {
			renames[name] = f.ClusterTypes[i].Name
		}
	}
	return renames
}

// ApplyRenames gives cluster types their names in a later fleet.
func (f *Fleet) ApplyRenames(later *Fleet) {
	renames := later.Renames()
	if len(renames) == 0 {
		return
	}
	formerly := map[string][]string{}
	for i := range later.ClusterTypes {
		formerly[later.ClusterTypes[i].Name] = later.ClusterTypes[i].Formerly
	}
	rename := func(name *string) {
		if now, renamed := renames[*name]; renamed {
			*name = now
		}
	}
	for i := range f.ClusterTypes {
		one := &f.ClusterTypes[i]
		rename(&one.Name)
		one.Formerly = formerly[one.Name]
	}
	for i := range f.Clusters {
		rename(&f.Clusters[i].ClusterType)
	}
	for i := range f.Assignments {
		rename(&f.Assignments[i].ClusterType)
	}
	f.sortLists()
}

type formerName struct {
	path      *Path
	name, now string
}

func (c *crossReferences) noteFormerNames(o *ObjectReader, clusterType *ClusterType) {
	if len(clusterType.Formerly) == 0 || !isSet(clusterType.Name) {
		return
	}
	if of := reconciler.Named(clusterType.Reconciler); of != nil && of.NoRename != "" {
		o.Report("formerly", "cannot be set: %s", of.NoRename)
	}
	EachText(o, "formerly", func(path *Path, name string) {
		if problem := checkClusterTypeName(name); problem != "" {
			c.reader.Report(path, "%s", problem)
			return
		}
		c.formerNames = append(c.formerNames, formerName{path, name, clusterType.Name})
	})
}

func (c *crossReferences) checkFormerNames() {
	had := map[string]string{}
	for _, one := range c.formerNames {
		by, twice := had[one.name]
		switch isType := func(c ClusterType) bool { return c.Name == one.name }; {
		case one.name == one.now:
			c.reader.Report(one.path, "is the present name of the cluster type: list its former names")
		case twice && by == one.now:
			c.reader.Report(one.path, "is there twice")
		case twice:
			c.reader.Report(one.path, "cluster type %q was called %q, too: only one of the two can have its folders", by, one.name)
		case slices.ContainsFunc(c.decoded.Fleet.ClusterTypes, isType):
			c.reader.Report(one.path, "a cluster type of the fleet is called %q: choose another name for that one", one.name)
		}
		had[one.name] = one.now
	}
}
