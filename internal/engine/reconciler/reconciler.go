// Package reconciler knows everything about reconcilers: kinds and their links, templates, parameters, agents,
// statuses and removal, and the kinds that provide Secrets. Other packages keep no lists of kinds. The package is
// pure.
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

// Reconciler describes a reconciler. "" and nil mean none, unless a field says otherwise. A field No... is the reason
// why a feature is missing.
type Reconciler struct {
	// Name is the value of a cluster type's `reconciler`, Product the name in messages.
	Name    string
	Product string
	// Namespace is the namespace of the agent and of rendered objects; "" if nothing runs on a cluster.
	Namespace string
	// Reserved are further namespaces that workloads must not use.
	Reserved []string
	// Kinds are in reading order: roots, makers, sources. An object is then never read before its origin.
	Kinds []ObjectKind
	// Deployers are the kinds that deploy an assignment's manifests.
	Deployers []string
	// HubOf is the reconciler on each cluster whose variant on a hub this is.
	HubOf string
	// Actions is the number of template actions, "{{...}}", of the reconciler itself that its template writes.
	Actions int
	// LongestName limits its objects' names; 0 means the limit of a label.
	LongestName int
	// RejectsDuplicates reports that it refuses folders with an object in two files, ReadsJSON that it reads every .json
	// file as a manifest.
	RejectsDuplicates, ReadsJSON bool
	// NoVariable returns why a key and its value cannot replace a variable.
	NoVariable     func(key, value string, isText bool) string
	NoSOPS         string
	SecretValues   *SecretValues
	NoSecretValues string
	// NoRename explains why moving the folder of a host removes the deployed objects.
	NoRename string
	// NoFolder is part of the message about a missing folder.
	NoFolder string
	// OneImage reports that its objects name one image, so that ranges of versions are impossible.
	OneImage  bool
	NoObjects string
	// Repository is the agent's default name of the GitOps repository; "" if it uses the URL.
	Repository string
	// Unordered returns why manifests cannot wait for others. sameHost means that both belong to the cluster, or both
	// to its type.
	Unordered func(own, other Manifests, sameHost bool) string
	// Unverified returns why a source is not verified although parameters require that.
	Unverified func(parameters map[string]any, from Manifests, isRegistry bool) string
	// Refresh triggers an immediate read of a branch. NoRefresh has the reason and the remedy.
	Refresh   *Refresh
	NoRefresh string
	Agent     Agent
	// Decisive lists fields that other managers may add, Own the objects that its controllers create for themselves.
	Decisive []Decisive
	Own      []Own
}

// SecretValues describes the Secret with a chart's values.
type SecretValues struct {
	// Namespace is "" for the workload's namespace.
	Namespace string
	// Labels make the reconciler notice a changed Secret.
	Labels map[string]string
}

// ObjectKind describes a kind of a reconciler's objects. "" and nil mean none.
type ObjectKind struct {
	// Versions lists the readable versions, newest first, separated by commas. Resource is the name in API paths.
	Group, Kind, Versions, Resource string
	// Role has the functions of its objects. Objects without a role do not affect verdicts.
	Role Role
	// Sources are the fields that name the source of the content, by precedence.
	Sources []Reference
	// Parameter is merged over the spec. Settings lists the fields and the access each one grants.
	Parameter string
	Settings  []Setting
	// Pointers are the fields that repeat attributes of a deployment target.
	Pointers []Pointer
	// For has the manifests that Flotilla renders such an object for.
	For Manifests
	// Account and Project are the fields for a workspace's account and project. The parameter extends the lists in
	// Extended and replaces others.
	Account, Project string
	Extended         []string
	// Either names two exclusive fields. Objects for EitherFor have the first; InPlace names an alternative to the
	// second.
	Either    [2]string
	EitherFor Manifests
	InPlace   string
	// Final describes how Flotilla renders the deployed objects. Fetch adds a source's settings to a request.
	Final *Final
	Fetch func(object map[string]any, into *objects.Request) (problems []string)
	// WaitsForAll reports that an object is ready only when all applied objects are.
	WaitsForAll bool
	Removal     Removal
	// Applies is the key of a label or annotation on all applied objects. If it ends in "/name", that label and
	// "/namespace" identify the applying object.
	Applies string
	// Template is the field of the spec with the template of generated objects.
	Template string
	// Gives is the field of a source with its current revision.
	Gives string
	// Has are the fields with the revision or digest received from the source. One is enough.
	Has []string
	// Makes are generated kinds, which count for readiness. The label Label, or else an owner reference, names the
	// maker, and NamespaceLabel its namespace, if that may differ.
	Makes                 []string
	Label, NamespaceLabel string
	// Status evaluates an object with related objects; nil means that the condition Ready decides.
	Status func(all *Listing, one *ListedObject) verdict.Status
	// Running returns the content brought onto a cluster, Root the content applied from a folder, and Made whether a
	// generated object matches the Template.
	Running func(all *Listing, one *ListedObject) Running
	Root    func(all *Listing, one *ListedObject, at folder.Location, dir string) (root Root, follows bool)
	Made    func(maker, made *ListedObject) verdict.Status
	// Destination is the field with the cluster that a hub applies the content to.
	Destination string
	// Wanted reports whether a source certainly has the content of its spec; then it need not be reachable. Silent
	// sources never have a status.
	Wanted, Silent func(source *ListedObject) bool
	// Retried is how long a failure does not count, for agents that retry without counting attempts.
	Retried time.Duration
}

// Role is a set of functions of objects.
type Role int

// Records name consumers, suppliers, and makers of consumers.
const (
	// Follows marks objects that can follow a folder.
	Follows Role = 1 << iota
	// Consumer marks objects that bring a workload onto a cluster.
	Consumer
	// Maker marks objects that create objects of other kinds.
	Maker
	// Source marks objects that fetch content for others.
	Source
	// Supplier marks objects that create a Secret for a workload.
	Supplier

	anyRole Role = -1
)

// Reference is a field that names an object.
type Reference struct {
	// Field is the path of an object with `name` and perhaps `kind` and `namespace`, or of a string
	// "<namespace>/<name>". A step "<field>[]" is a list.
	Field string
	// Kinds are the possible kinds, the default first.
	Kinds []string
	// Optional reports that an object has content without the reference.
	Optional bool
}

// DefaultAgent is the reconciler of an agent that names none.
const DefaultAgent = "flux"

// Agent describes an agent. Objects names its file in agents/, without ".yaml"; package agent describes the format.
// The root there, of a kind that [Follows], has `folder: both`, for the cluster type and the cluster.
type Agent struct {
	Objects string
	// Group is the API group of its kinds, or a common suffix. Missing explains why they are missing and how to
	// install them.
	Group, Missing string
	Controllers    []Controller
	Confinement    *Confinement
	// BearerTokens and Passphrases report support for bearer tokens and passphrases of SSH keys.
	BearerTokens, Passphrases bool
	// KnownHosts is where it finds the keys of Git hosts, if not in its credentials.
	KnownHosts string
	// Names are the names that its installer gives to objects and Secrets.
	Names []string
	// Synced is the file that its installer writes into a folder with one of Names, within the cluster's.
	Synced string
	// BuildsFolders reports that it builds a folder without a kustomization.yaml, too.
	BuildsFolders bool
	// Registers is the label selector of a hub's Secrets that register clusters.
	Registers string
	// Contexts are the default contexts of its commit statuses, with {cluster} for the cluster's name.
	Contexts []string
	// Auth maps a credential, "" for none, to the agent's name for the authentication method.
	Auth map[string]string
	// Notices are the commit statuses that its notifications set, if the agent does not support Git hosts itself.
	Notices       []Notice
	NoticeContext string
	NoFeedback    string
	FluxFeedback  bool
}

// Controller is a Deployment of an agent. Without is the effect of its absence.
type Controller struct {
	Name, Without string
	Reports       bool // it is needed only for feedback
	// Check returns why the agent's own manifests may not suffice.
	Check func(deployment *unstructured.Unstructured) string
}

// Notice is the commit status of a success or failure. Commit and Description are templates.
type Notice struct {
	Name                string
	Success             bool
	Commit, Description string
}

// Is reports whether objects of a kind have a role. Nil has none.
func (k *ObjectKind) Is(role Role) bool { return k != nil && k.Role&role != 0 }

// MakesKind reports whether objects of a kind create objects of another. Nil makes none.
func (k *ObjectKind) MakesKind(name string) bool { return k != nil && slices.Contains(k.Makes, name) }

// all is sorted by name. kinds has no duplicates.
var (
	all   []*Reconciler
	kinds []*ObjectKind
)

// The tables contain functions that read the tables, which an initializer cannot.
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

// Named returns the reconciler of a name; nil if there is none.
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

// Template returns the Go template that is executed for each assignment.
func (r *Reconciler) Template() string { return file("templates/" + r.Name) }

// AgentTemplate returns the file of [Agent.Objects].
func (r *Reconciler) AgentTemplate() string { return file("agents/" + r.Agent.Objects) }

func file(name string) string {
	text, err := templates.ReadFile(name + ".yaml")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	return string(text)
}

// Names returns the names of the reconcilers, sorted.
func Names() []string {
	return collect(func(one *Reconciler) []string { return []string{one.Name} })
}

func collect(from func(one *Reconciler) []string) (texts []string) {
	for _, one := range all {
		texts = append(texts, from(one)...)
	}
	return texts
}

// Agents returns the names of reconcilers with an agent on a cluster or its hub.
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

// HasAgent reports whether an agent applies the folders to clusters. Nil, the user's own reconciler, has none.
func (r *Reconciler) HasAgent() bool { return r != nil && r.Namespace != "" }

// OnHub reports whether the reconciler applies to other clusters than its own.
func (r *Reconciler) OnHub() bool { return r != nil && r.HubOf != "" }

// InNamespace returns the reconciler that runs in a namespace; nil if none does.
func InNamespace(name string) *Reconciler {
	return first(all, func(one *Reconciler) bool {
		return name != "" && (one.Namespace == name || slices.Contains(one.Reserved, name))
	})
}

// Kinds returns all kinds, including the suppliers, without duplicates.
func Kinds() []*ObjectKind { return slices.Clone(kinds) }

// KindOf returns the kind with a group and name; nil if it is not in [Kinds].
func KindOf(group, kind string) *ObjectKind {
	return first(kinds, func(one *ObjectKind) bool { return one.Group == group && one.Kind == kind })
}

// KindNamed returns the kind with a name, which is unique; nil if it is not in [Kinds].
func KindNamed(kind string) *ObjectKind {
	return first(kinds, func(one *ObjectKind) bool { return one.Kind == kind })
}

// Contexts returns the default contexts of agents' commit statuses.
func Contexts() []string {
	return collect(func(one *Reconciler) []string { return one.Agent.Contexts })
}

// OfGroup returns the reconciler of an API group; nil if there is none.
func OfGroup(group string) *Reconciler {
	return first(all, func(one *Reconciler) bool {
		own := one.Agent.Group
		return own != "" && (group == own || strings.HasSuffix(group, "."+own))
	})
}

// InstallersFolder returns the folder that a cluster follows by an installer's file.
func InstallersFolder(file string) (folder string, is bool) {
	for _, one := range all {
		if within := path.Dir(file); one.Agent.Synced != "" && path.Base(file) == one.Agent.Synced &&
			slices.Contains(one.Agent.Names, path.Base(within)) {
			return path.Dir(within), true
		}
	}
	return "", false
}

// IsOfFolders reports whether the cluster whose folder has such objects applies them, as the agent's installer
// arranges.
func (k *ObjectKind) IsOfFolders() bool {
	of := OfGroup(k.Group)
	return of != nil && of.Agent.Synced != ""
}

// ListedKinds returns the kinds that affect verdicts, in reading order.
func (r *Reconciler) ListedKinds() []ObjectKind {
	return slices.DeleteFunc(slices.Clone(r.Kinds), func(kind ObjectKind) bool { return !kind.Is(anyRole) })
}

// Hub returns the reconciler whose objects are on a hub.
func Hub() *Reconciler { return first(all, (*Reconciler).OnHub) }

// ListedKinds returns the kinds of all reconcilers that affect verdicts.
func ListedKinds() []ObjectKind {
	var listed []ObjectKind
	for _, one := range all {
		if !one.OnHub() { // its kinds are Argo CD's
			listed = append(listed, one.ListedKinds()...)
		}
	}
	return listed
}

// IsTemplated reports whether objects of a kind create others from a template.
func IsTemplated(kind string) bool {
	found := KindNamed(kind)
	return found != nil && found.Template != ""
}

// IsReconciled reports whether objects of a kind in an assignment's folder show its verdict.
func IsReconciled(group, kind string) bool { return KindOf(group, kind).isReconciled() }

func (k *ObjectKind) isReconciled() bool {
	return k.Is(Consumer|Supplier) || k.Is(Maker) && slices.ContainsFunc(k.Makes, func(made string) bool {
		return KindNamed(made).Is(Consumer)
	})
}
