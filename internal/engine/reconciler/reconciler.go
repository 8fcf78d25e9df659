// Package reconciler is the single source of knowledge about reconcilers: their kinds and the links between them,
// templates and parameters, agents, how statuses become verdicts, and removal. It also has the kinds that provide
// Secrets, because folders may contain them. All other packages ask here, so their lists of kinds cannot differ. The
// package is pure.
package reconciler

import (
	"embed"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Reconciler describes a reconciler.
type Reconciler struct {
	// Name is the value of a cluster type's `reconciler`.
	Name string
	// Product is the name in messages.
	Product string
	// Namespace is the namespace of the agent and of the objects that Flotilla renders; "" if it has none on a
	// cluster.
	Namespace string
	// Reserved are further namespaces of the reconciler itself, in which no workload may be.
	Reserved []string
	// Kinds lists the kinds of its objects in reading order: roots first, then makers, then sources. An object is
	// then never read before the object that it results from.
	Kinds []ObjectKind
	// Deployers are the kinds that deploy an assignment's manifests. Other kinds only support them.
	Deployers []string
	// HubOf is the name of the reconciler on each cluster if this one is its variant on a hub: the agent and its
	// objects are on another cluster.
	HubOf string
	// Actions is the number of the reconciler's own template actions, "{{...}}", that its template writes for an
	// assignment.
	Actions int
	// LongestName is the maximum length of its objects' names; 0 means that of a label.
	LongestName int
	// RejectsDuplicates reports that it applies nothing from a folder in which two files have the same object.
	RejectsDuplicates bool
	// ReadsJSON reports that it reads every .json file of a folder as a manifest.
	ReadsJSON bool
	// NoVariable returns why a key of the configuration and its value cannot replace a variable in manifests; "" if
	// they can. It is nil if the reconciler replaces no variables.
	NoVariable func(key, value string, isText bool) string
	// NoSOPS explains why it cannot decrypt SOPS files; "" if it can.
	NoSOPS string
	// SecretValues describes how a chart gets values from a Secret. If it is nil, NoSecretValues explains why.
	SecretValues   *SecretValues
	NoSecretValues string
	// NoRename explains why moving the folder of a host removes the deployed objects; "" if it does not.
	NoRename string
	// NoFolder is part of the message about a missing folder.
	NoFolder string
	// OneImage reports that its objects name a single image, so a range of versions is not possible.
	OneImage bool
	// NoObjects explains why Flotilla renders no final objects for it; "" if it does.
	NoObjects string
	// Repository is the default name of the object by which the agent knows the GitOps repository; "" if it uses the
	// URL.
	Repository string
	// Unordered returns why manifests cannot wait for other manifests on the cluster; "" if they can. sameHost means
	// that both are assigned to the cluster, or both to its type.
	Unordered func(own, other Manifests, sameHost bool) string
	// Unverified returns why a source is not verified although parameters require it; "" if it is verified or
	// verification is not required. It is nil if the reconciler verifies nothing.
	Unverified func(parameters map[string]any, from Manifests, isRegistry bool) string
	// Refresh triggers an immediate read of a branch. If it is nil, NoRefresh gives the reason and the remedy.
	Refresh   *Refresh
	NoRefresh string
	// Agent describes its agent.
	Agent Agent
	// Decisive lists fields that other managers may add to the agent's objects.
	Decisive []Decisive
	// Own lists objects that its controllers create for their own use.
	Own []Own
}

// SecretValues describes the Secret with a chart's values.
type SecretValues struct {
	// Namespace is the namespace of the Secret; "" means that of the workload.
	Namespace string
	// Labels make the reconciler notice a changed Secret.
	Labels map[string]string
}

// ObjectKind describes a kind of a reconciler's objects.
type ObjectKind struct {
	// Group and Kind identify the kind. Versions lists the readable versions, newest first, separated by commas.
	// Resource is the name in API paths.
	Group, Kind, Versions, Resource string
	// Role is the set of functions of its objects. An object without a role does not affect verdicts.
	Role Role
	// Sources are the fields that name the source of an object's content. The first field that is set counts.
	Sources []Reference
	// Parameter is the parameter that is merged over the spec of its objects; "" if there is none. Settings lists the
	// fields of the spec and the access each one grants.
	Parameter string
	Settings  []Setting
	// Pointers are the fields of the spec that repeat attributes of a deployment target.
	Pointers []Pointer
	// For is the set of manifests that Flotilla renders an object of this kind for.
	For Manifests
	// Account and Project are the fields of the spec set from a workspace's service account and project. Extended are
	// the lists that the parameter extends; it replaces all other lists.
	Account, Project string
	Extended         []string
	// Either names two exclusive fields of the spec. EitherFor are the manifests whose object has the first; InPlace
	// tells the user what to set instead of the second.
	Either    [2]string
	EitherFor Manifests
	InPlace   string
	// Final describes how Flotilla renders the deployed objects; nil for the reason in Reconciler.NoObjects. Fetch
	// adds the settings of a source to a request and returns problems like Final.Request; nil if there are none.
	Final *Final
	Fetch func(object map[string]any, into *objects.Request) (problems []string)
	// WaitsForAll reports that an object is ready only when all applied objects are.
	WaitsForAll bool
	// Removal describes the effect of deletion on applied objects. Applies is the key of a label or annotation on all
	// applied objects. If it ends in "/name", that label and the label "/namespace" identify the applying object.
	Removal Removal
	Applies string
	// Template is the field of the spec with the template of generated objects; "" if there is none.
	Template string
	// Gives is the field of a source with its current revision; "" if there is none.
	Gives string
	// Has are the fields with the revision or digest that an object has received from its source. One is enough.
	Has []string
	// Makes are the kinds of generated objects, which count for readiness. Label is the key of their label with the
	// maker's name; if it is "", an owner reference names the maker. NamespaceLabel is the key for the maker's
	// namespace; if it is "", maker and object share a namespace.
	Makes                 []string
	Label, NamespaceLabel string
	// Status evaluates an object together with related objects; if it is nil, the condition Ready decides.
	Status func(all *Listing, one *ListedObject) verdict.Status
	// Running returns the content that an object has brought onto a cluster; nil if objects of the kind do not report
	// it.
	Running func(all *Listing, one *ListedObject) Running
	// Root returns the content that an object has applied from the folder it follows; nil for kinds that follow none.
	Root func(all *Listing, one *ListedObject, at folder.Location, dir string) (root Root, follows bool)
	// Made reports whether a generated object matches the maker's Template.
	Made func(maker, made *ListedObject) verdict.Status
	// Destination is the field that names the cluster to which a hub applies the content; "" if there is none.
	Destination string
	// Wanted reports whether a source certainly has the content of its current spec; then it need not be reachable.
	// Silent reports whether it never has a status.
	Wanted, Silent func(source *ListedObject) bool
	// Retried is how long an object may report a failure before it counts, for agents that retry without counting
	// attempts. 0 means that a failure counts at once.
	Retried time.Duration
}

// Role is a set of functions of objects.
type Role int

// The roles.
const (
	// Follows marks objects that can follow a folder of a GitOps repository.
	Follows Role = 1 << iota
	// Consumer marks objects that bring a workload onto a cluster. Records name them.
	Consumer
	// Maker marks objects that create objects of other kinds. Records name them if they create consumers.
	Maker
	// Source marks objects that fetch content for others.
	Source
	// Supplier marks objects that create a Secret used by a workload. Records name them.
	Supplier

	anyRole Role = -1
)

// Reference is a field that names an object.
type Reference struct {
	// Field is the path of an object with `name` and usually `kind` and `namespace`, or of a string
	// "<namespace>/<name>". A step that ends with "[]" is a list of references.
	Field string
	// Kinds are the kinds it can name. The first one is the default.
	Kinds []string
	// Optional reports that an object has content without the reference.
	Optional bool
}

// DefaultAgent is the reconciler of an agent that names none.
const DefaultAgent = "flux"

// Agent describes an agent and how to set it up. To add an agent, add an entry here and a file in agents/ with its
// objects: `flotilla_agent` and `agent_manifests` then support it.
//
// Each document of the file is an object with placeholders such as ${name} in its strings. A field whose placeholders
// are all empty is omitted, so one Secret can have fields for every kind of credentials. The field `flotilla` has
// further conditions. Package agent describes both, in template.go and values.go. The root, of a kind that [Follows],
// is one document with `folder: both`. It yields an object for the cluster type and one for the cluster, for
// ${folder.path} in the repository ${url}.
type Agent struct {
	// Objects is the name of the file in agents/, without ".yaml".
	Objects string
	// Group is the API group of its kinds, or a common suffix. Missing explains why the kinds are missing and how to
	// install them.
	Group, Missing string
	// Controllers are the Deployments that it requires.
	Controllers []Controller
	// Confinement confines its controllers; nil if they have no such arguments.
	Confinement *Confinement
	// BearerTokens and Passphrases report support for bearer tokens, and for SSH keys with a passphrase.
	BearerTokens, Passphrases bool
	// KnownHosts is where it finds the keys of Git hosts, if not in its credentials.
	KnownHosts string
	// Names are the names that its installer gives the agent's own objects and Secrets.
	Names []string
	// Synced is the file that its installer writes into a folder with one of Names, below the folder that the cluster
	// follows; "" if it writes none.
	Synced string
	// BuildsFolders reports that it builds every folder with kustomize, also one without a kustomization.yaml.
	BuildsFolders bool
	// Registers is the label selector of the Secret that registers a cluster on a hub; "" if it is not for a hub.
	Registers string
	// Contexts are the default contexts of its commit statuses, with {cluster} for the cluster's name.
	Contexts []string
	// Auth maps a credential to the agent's name for the authentication method; the key "" means none.
	Auth map[string]string
	// Notices are the commit statuses that its notifications set through a Git host's API. NoticeContext is their
	// context, with placeholders. Both are empty if the agent supports Git hosts itself.
	Notices       []Notice
	NoticeContext string
	// NoFeedback explains why it cannot report to Git hosts and gives an alternative; "" if it can.
	NoFeedback string
	// FluxFeedback reports that it uses Flux' notification controller.
	FluxFeedback bool
}

// Controller is a Deployment of an agent.
type Controller struct {
	Name, Without string
	Reports       bool // it is needed only for feedback
	// Check returns why the agent's own manifests may not be enough; nil if there is no check.
	Check func(deployment *unstructured.Unstructured) string
}

// Notice is a commit status set by a notification: success or failure of the commit that a template names.
type Notice struct {
	Name                string
	Success             bool
	Commit, Description string
}

// Is reports whether objects of a kind have a role. A nil kind, which is not in [Kinds], has none.
func (k *ObjectKind) Is(role Role) bool { return k != nil && k.Role&role != 0 }

// MakesKind reports whether objects of a kind, which may be nil, create objects of another kind.
func (k *ObjectKind) MakesKind(name string) bool { return k != nil && slices.Contains(k.Makes, name) }

// all has the reconcilers sorted by name. kinds has all their kinds and the suppliers, without duplicates.
var (
	all   []*Reconciler
	kinds []*ObjectKind
)

// Functions in the tables look up other kinds in the tables, which an initializer could not.
func init() {
	all = []*Reconciler{&argocd, &argocdHub, &configSync, &fleet, &flux, &zarf}
	for _, one := range all {
		for i := range one.Kinds {
			if kind := &one.Kinds[i]; KindOf(kind.Group, kind.Kind) == nil {
				kinds = append(kinds, kind)
			}
		}
	}
	for i := range suppliers {
		kinds = append(kinds, &suppliers[i])
	}
}

// Named returns the built-in reconciler of a name; nil if there is none.
func Named(name string) *Reconciler {
	return first(all, func(one *Reconciler) bool { return one.Name == name })
}

func first[T any](of []*T, is func(one *T) bool) *T {
	if at := slices.IndexFunc(of, is); at >= 0 {
		return of[at]
	}
	return nil
}

//go:embed templates agents
var templates embed.FS

// Template returns the Go template of YAML documents that is executed for each assignment.
func (r *Reconciler) Template() string { return file("templates/" + r.Name) }

// AgentTemplate returns the objects that make the agent follow a cluster's folders: YAML documents with placeholders
// and a field `flotilla`, which package agent describes.
func (r *Reconciler) AgentTemplate() string { return file("agents/" + r.Agent.Objects) }

func file(name string) string {
	text, err := templates.ReadFile(name + ".yaml")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	return string(text)
}

// Names returns the names of the built-in reconcilers, sorted.
func Names() []string {
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = one.Name
	}
	return names
}

// Agents returns the names of reconcilers with an agent on a cluster or its hub, sorted.
func Agents() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return !Named(name).HasAgent() })
}

// AgentsInWords lists the reconcilers with an agent, and their products.
func AgentsInWords() string {
	names := Agents()
	for i, name := range names {
		one := Named(name)
		names[i] = "`" + name + "` (" + one.Product + map[bool]string{true: " on another cluster, which deploys to it"}[one.OnHub()] + ")"
	}
	return wording.Either(names, "") + "; default: `" + DefaultAgent + "`"
}

// AgentNamespaces returns the namespaces of agents without duplicates.
func AgentNamespaces() []string {
	var all []string
	for _, name := range Agents() {
		all = append(all, Named(name).Namespace)
	}
	return slices.Compact(all)
}

// WithPassphrases returns the products whose agents accept SSH keys with a passphrase.
func WithPassphrases() []string {
	var products []string
	for _, one := range all {
		if one.Agent.Passphrases {
			products = append(products, one.Product)
		}
	}
	return products
}

// HasAgent reports whether an agent applies the folders to clusters. It is false for nil, the user's own reconciler,
// where Flotilla cannot tell.
func (r *Reconciler) HasAgent() bool { return r != nil && r.Namespace != "" }

// OnHub reports whether the reconciler's objects are on another cluster than the objects they apply.
func (r *Reconciler) OnHub() bool { return r != nil && r.HubOf != "" }

// InNamespace returns the reconciler that runs in a namespace; nil if none does.
func InNamespace(name string) *Reconciler {
	return first(all, func(one *Reconciler) bool {
		return name != "" && (one.Namespace == name || slices.Contains(one.Reserved, name))
	})
}

// Kinds returns the kinds of all reconcilers and the suppliers, without duplicates.
func Kinds() []*ObjectKind { return slices.Clone(kinds) }

// KindOf returns the kind with a group and name; nil if it is not in [Kinds].
func KindOf(group, kind string) *ObjectKind {
	return first(kinds, func(one *ObjectKind) bool { return one.Group == group && one.Kind == kind })
}

// KindNamed returns the kind with a name, as records and references have it; nil if it is not in [Kinds]. Names in
// [Kinds] are unique.
func KindNamed(kind string) *ObjectKind {
	return first(kinds, func(one *ObjectKind) bool { return one.Kind == kind })
}

// Contexts returns the default contexts of agents' commit statuses.
func Contexts() []string {
	var contexts []string
	for _, one := range all {
		contexts = append(contexts, one.Agent.Contexts...)
	}
	return contexts
}

// OfGroup returns the reconciler of an API group; nil if there is none.
func OfGroup(group string) *Reconciler {
	return first(all, func(one *Reconciler) bool {
		own := one.Agent.Group
		return own != "" && (group == own || strings.HasSuffix(group, "."+own))
	})
}

// InstallersFolder returns the folder that a cluster follows, if an agent's installer wrote the file to set that up.
func InstallersFolder(file string) (folder string, is bool) {
	for _, one := range all {
		if within := path.Dir(file); one.Agent.Synced != "" && path.Base(file) == one.Agent.Synced &&
			slices.Contains(one.Agent.Names, path.Base(within)) {
			return path.Dir(within), true
		}
	}
	return "", false
}

// IsOfFolders reports whether objects of a kind apply to the cluster whose folder has them, because the agent's
// installer makes the cluster follow it. Objects of other kinds may come from anywhere.
func (k *ObjectKind) IsOfFolders() bool {
	of := OfGroup(k.Group)
	return of != nil && of.Agent.Synced != ""
}

// ListedKinds returns the reconciler's kinds that affect verdicts, in reading order.
func (r *Reconciler) ListedKinds() []ObjectKind {
	return slices.DeleteFunc(slices.Clone(r.Kinds), func(kind ObjectKind) bool { return !kind.Is(anyRole) })
}

// Hub returns the reconciler whose objects are on a hub.
func Hub() *Reconciler { return first(all, (*Reconciler).OnHub) }

// ListedKinds returns the kinds of all reconcilers that affect verdicts, without duplicates, in reading order.
func ListedKinds() []ObjectKind {
	var listed []ObjectKind
	for _, one := range all {
		if !one.OnHub() { // its kinds are Argo CD's
			listed = append(listed, one.ListedKinds()...)
		}
	}
	return listed
}

// IsTemplated reports whether objects of a kind create others from a template they can be compared with.
func IsTemplated(kind string) bool {
	found := KindNamed(kind)
	return found != nil && found.Template != ""
}

// IsReconciled reports whether objects of a kind in an assignment's folder show the assignment's verdict.
func IsReconciled(group, kind string) bool { return KindOf(group, kind).isReconciled() }

func (k *ObjectKind) isReconciled() bool {
	return k.Is(Consumer|Supplier) || k.Is(Maker) && slices.ContainsFunc(k.Makes, func(made string) bool {
		return KindNamed(made).Is(Consumer)
	})
}
