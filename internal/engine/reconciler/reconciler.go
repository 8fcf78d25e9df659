// Package reconciler is what is known of each reconciler: the kinds of its objects, what they are for, and how they
// belong together; its template and parameters; what its agent needs; how the status of its objects becomes a verdict; and
// what is removed with its objects. The kinds that bring Secrets are here, too: a folder may have them beside a
// reconciler's. What has to know that asks this package, so that no list of kinds can differ from
// another. It is pure.
package reconciler

import (
	"embed"
	"path"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Reconciler is what is known of one reconciler.
type Reconciler struct {
	// Name is what a cluster type has as `reconciler`.
	Name string
	// Product is what messages call it.
	Product string
	// Namespace is that of the objects that Flotilla renders, and of its agent; "" where it has none on a cluster.
	Namespace string
	// Reserved are the other namespaces in which no workload may be, since the reconciler itself is there.
	Reserved []string
	// Kinds are those of its objects. What follows a folder comes first, then what makes objects, sources last: what
	// is read later is then never older than what it came of.
	Kinds []Kind
	// Deploys are the kinds of the objects that deploy what assignments have: of those of other kinds, they need some.
	Deploys []string
	// HubOf names the reconciler that is on each cluster, where this one is its like on a hub: an agent on another cluster
	// applies the folders, and its objects are there.
	HubOf string
	// Actions is how many actions of its own templates, "{{...}}", its template writes for an assignment.
	Actions int
	// LongestName is how many characters the names of its objects can have; 0 where they are as long as labels.
	LongestName int
	// Distinct says that it applies nothing of a folder in which two files have the same object.
	Distinct bool
	// ReadsJSON says that every file of a folder that ends in .json is read as a manifest.
	ReadsJSON bool
	// NoVariable says why a key of the configuration and its value, which may be no text, cannot replace a variable in
	// manifests; "" where they can. It is nil where variables are not replaced.
	NoVariable func(key, value string, isText bool) string
	// NoSOPS says why it cannot decrypt SOPS files; "" where it can.
	NoSOPS string
	// SecretValues is how a chart gets values from a Secret; nil where it cannot. NoSecretValues says why it cannot.
	SecretValues   *SecretValues
	NoSecretValues string
	// NoRename says why the folder of a host cannot move without a removal of what was deployed from it; "" where it can.
	NoRename string
	// NoFolder is in the messages of what follows a folder that does not exist.
	NoFolder string
	// OneImage reports whether its objects name one image of a registry, so that a range of versions is not possible.
	OneImage bool
	// NoObjects says why Flotilla itself does not render what its objects deploy; "" where it does.
	NoObjects string
	// Repository is the name of the object by which its agent knows the GitOps repository, unless parameters say another
	// one; "" where it knows the URL.
	Repository string
	// Unordered says why manifests on a cluster cannot wait for other manifests there; "" where they can. sameHost is
	// whether both are assigned to the cluster, or both to its type.
	Unordered func(own, other Manifests, sameHost bool) string
	// Unverified says why a source is not verified although parameters require it of its kind; "" where it is, or they do not. It is
	// nil for reconcilers that verify nothing.
	Unverified func(parameters map[string]any, from Manifests, isRegistry bool) string
	// Look is how it is asked to look at a branch now; nil where NoLook says why it cannot be asked, and what helps.
	Look   *Look
	NoLook string
	// Agent is what is known of its agent.
	Agent Agent
	// Decisive are fields that others may add to the objects of an agent.
	Decisive []Decisive
	// Own are the objects that its controllers make for themselves.
	Own []Own
}

// SecretValues is where a Secret with values of a chart has to be.
type SecretValues struct {
	// Namespace is that of the Secret; "" is the namespace of the workload.
	Namespace string
	// Labels are those by which a changed Secret is noticed.
	Labels map[string]string
}

// Kind is a kind of objects.
type Kind struct {
	// Group and Kind name it; Versions are those that can be read, the newest first, separated by commas, and Resource
	// is its name in the API's paths.
	Group, Kind, Versions, Resource string
	// Role is what its objects do. An object may do several things; one of no role says nothing about what runs.
	Role Role
	// Sources are the fields that name where an object gets its content from. The first one that an object has counts.
	Sources []Reference
	// Parameter is the name of the parameter that is merged over the spec of its objects; "" where there is none. Settings
	// are the fields of the spec, and what each reaches.
	Parameter string
	Settings  []Setting
	// Pointers are the fields of the spec that have what a deployment target says, too.
	Pointers []Pointer
	// For are the manifests for which Flotilla renders an object of the kind.
	For Manifests
	// Account and Project are the fields of the spec that a workspace's service account and project decide. Extended are
	// the lists that the parameter extends; it replaces all others.
	Account, Project string
	Extended         []string
	// Either are two fields of the spec, where an object with the first cannot have the second. EitherFor are the manifests
	// whose object has the first, and InPlace says what is set in place of the second then.
	Either    [2]string
	EitherFor Manifests
	InPlace   string
	// Final is how Flotilla renders what its objects deploy; nil where NoObjects of the reconciler says why not. Fetch
	// adds to a request what an object of a source says, and returns problems as Final.Request does; nil where it says nothing.
	Final *Final
	Fetch func(object map[string]any, into *objects.Request) (problems []string)
	// WaitsForAll says that an object is ready only when all is that it has applied.
	WaitsForAll bool
	// Removal is what becomes of what its objects have applied, and Applies is the key of a label, or an annotation, that
	// all of that has. Where it ends in "/name", the labels of that key and of "/namespace" beside it say by which object.
	Removal Removal
	Applies string
	// Template is the field of the spec that has the spec of what its objects make; "" where they make it of something else.
	Template string
	// Gives is the field of a source that has the revision that others get of it; "" where it has none.
	Gives string
	// Has are the fields that have the revision, or its digest, that an object has got of its source. One is enough.
	Has []string
	// Makes are the kinds that its objects make. What they made is part of whether they are ready. Label is the key of the
	// label by which that has the name of its maker; where it is "", an owner reference says so. NamespaceLabel is that of
	// the maker's namespace; where it is "", they are in the same one.
	Makes                 []string
	Label, NamespaceLabel string
	// Status makes a verdict of the status of an object, with what belongs to it; where it is nil, the condition Ready does.
	Status func(all *Listing, one *Object) verdict.Status
	// Running says what an object has brought onto a cluster; it is nil where objects of the kind do not say so.
	Running func(all *Listing, one *Object) Running
	// Root says what an object has applied of a folder that it follows; it is nil for kinds that follow none.
	Root func(all *Listing, one *Object, at Location, folder string) (root Root, follows bool)
	// Made says whether an object is as its maker wants it, where Template says of what that makes it.
	Made func(maker, made *Object) verdict.Status
	// Destination is the field that names the cluster to which a hub applies an object's content; "" where there is none.
	Destination string
	// Wanted says whether what a source has is certainly what its spec asks for: then it does not matter whether the source
	// can be reached. Silent says whether it never has a status.
	Wanted, Silent func(source *Object) bool
	// Retried is how long an object may say that it has failed before it has: its agent tries again, and does not say how often
	// it has. 0 is that it has failed when it says so.
	Retried time.Duration
}

// Role is a set of what objects do.
type Role int

// The roles.
const (
	// Follows is that of what can follow a folder of a GitOps repository.
	Follows Role = 1 << iota
	// Consumer is that of what brings a workload onto a cluster. Records name such objects.
	Consumer
	// Maker is that of what makes objects of other kinds. Records name such objects where they make consumers.
	Maker
	// Source is that of what fetches content for others.
	Source
	// Supplier is that of what brings a Secret that a workload uses. Records name such objects.
	Supplier

	anyRole Role = -1
)

// Reference is a field that names an object.
type Reference struct {
	// Field is the path of an object with `name`, and mostly `kind` and `namespace`, or of a text
	// "<namespace>/<name>". A step that ends with "[]" is a list, of which each element names one.
	Field string
	// Kinds are those that it can name. Where the object does not say which, it is the first.
	Kinds []string
	// Optional says that an object may have none, and yet has content.
	Optional bool
}

// DefaultAgent is the reconciler of an agent that names none.
const DefaultAgent = "flux"

// Agent is what Flotilla asks of an agent, and what the agent can be asked for. An agent is added by an entry here, and a
// file of agents with its objects: `flotilla_agent` and `agent_manifests` then put it onto clusters. Each document of the
// file is an object with placeholders such as ${name} in its texts. A field whose placeholders are all empty is left out:
// one Secret can have a field for each kind of credentials. What an object needs beside that is in its field `flotilla`,
// and both are described by package agent, in template.go and values.go. The object that follows a folder, of a kind that
// [Follows], is one document with `folder: both`, which gives an object for the cluster's type and one for itself: it
// has ${folder.path} in the repository ${url}.
type Agent struct {
	// Objects names the file of agents that has the objects by which the agent follows a cluster's folders, without ".yaml".
	Objects string
	// Group is that of its kinds, or the end of their groups. Missing says why the kinds are missing, and what brings them.
	Group, Missing string
	// Controllers are the Deployments without which it does not do its work.
	Controllers []Controller
	// Confinement confines its controllers; nil if they have no such arguments.
	Confinement *Confinement
	// BearerTokens and Passphrases say that it reads repositories with a bearer token, and with an SSH key that has a passphrase.
	BearerTokens, Passphrases bool
	// KnownHosts is where it knows the keys of Git hosts from, where that is not its credentials.
	KnownHosts string
	// Names are those that its own installer gives objects and Secrets of the agent itself.
	Names []string
	// Synced is a file that its own installer writes into a folder of that name, in the folder that the cluster follows; ""
	// where it writes none.
	Synced string
	// Registers is the label, as a selector, of the Secret by which a hub knows a cluster; "" where it is no hub's.
	Registers string
	// Contexts are those of the commit statuses that it reports by default, with {cluster} for the name of the cluster.
	Contexts []string
	// Auth are its words for the ways to authenticate at a Git host, by the name of a credential; "" is none.
	Auth map[string]string
	// Notices are the commit statuses that its notifications set by a Git host's API, and NoticeContext is their context, with
	// placeholders; none where the agent knows the Git hosts.
	Notices       []Notice
	NoticeContext string
	// NoFeedback says why it cannot report to Git hosts, and what to do instead; "" where it can.
	NoFeedback string
	// FluxFeedback says that it reports through Flux' notification controller.
	FluxFeedback bool
}

// Controller is a Deployment of an agent.
type Controller struct {
	Name, Without string
	Reports       bool // it is needed for feedback alone
	// Check says why what an agent's own manifests have may not be enough; nil where that is not known.
	Check func(deployment *unstructured.Unstructured) string
}

// Notice is a commit status that a notification sets: a success or a failure, of a commit that a template of the
// notification says.
type Notice struct {
	Name                string
	Success             bool
	Commit, Description string
}

// Is says whether the objects of a kind do something. Those of nil, which is none of [Kinds], do nothing.
func (k *Kind) Is(role Role) bool { return k != nil && k.Role&role != 0 }

// MakesKind says whether the objects of a kind, which may be nil, make those of another one.
func (k *Kind) MakesKind(name string) bool { return k != nil && slices.Contains(k.Makes, name) }

// all are the reconcilers, in the order of their names, and kinds those of all, each once, with the suppliers.
var (
	all   []*Reconciler
	kinds []*Kind
)

// The tables have functions that look up other kinds in the tables, so they are no initial values.
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

// Named returns the built-in reconciler of a name; nil where there is none.
func Named(name string) *Reconciler {
	return first(all, func(one *Reconciler) bool { return one.Name == name })
}

// first returns the first that is so; nil where none is.
func first[T any](of []*T, is func(one *T) bool) *T {
	if at := slices.IndexFunc(of, is); at >= 0 {
		return of[at]
	}
	return nil
}

//go:embed templates agents
var templates embed.FS

// Template is the text of the template that is executed for each assignment: Go's, of YAML documents.
func (r *Reconciler) Template() string { return file("templates/" + r.Name) }

// AgentTemplate is the text of the objects by which its agent follows a cluster's folders: YAML documents, whose
// placeholders and field `flotilla` package agent describes.
func (r *Reconciler) AgentTemplate() string { return file("agents/" + r.Agent.Objects) }

func file(name string) string {
	text, err := templates.ReadFile(name + ".yaml")
	if err != nil {
		panic(err) // the files are part of the binary
	}
	return string(text)
}

// Names are those of the built-in reconcilers, sorted.
func Names() []string {
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = one.Name
	}
	return names
}

// Agents are the names of those that have an agent on a cluster, or on its hub, sorted.
func Agents() []string {
	return slices.DeleteFunc(Names(), func(name string) bool { return !Named(name).HasAgent() })
}

// AgentsInWords names those that have an agent, with their products.
func AgentsInWords() string {
	names := Agents()
	for i, name := range names {
		one := Named(name)
		names[i] = "`" + name + "` (" + one.Product + map[bool]string{true: " on another cluster, which deploys to it"}[one.OnHub()] + ")"
	}
	return wording.Either(names, "") + "; default: `" + DefaultAgent + "`"
}

// AgentNamespaces are the namespaces of agents, each once.
func AgentNamespaces() []string {
	var all []string
	for _, name := range Agents() {
		all = append(all, Named(name).Namespace)
	}
	return slices.Compact(all)
}

// WithPassphrases are the products whose agents read SSH keys that have a passphrase.
func WithPassphrases() []string {
	var products []string
	for _, one := range all {
		if one.Agent.Passphrases {
			products = append(products, one.Product)
		}
	}
	return products
}

// HasAgent says whether an agent applies the folders' manifests to clusters. Of nil, which is the user's own, that is not
// known.
func (r *Reconciler) HasAgent() bool { return r != nil && r.Namespace != "" }

// OnHub says whether the objects of a reconciler are on another cluster than what they apply.
func (r *Reconciler) OnHub() bool { return r != nil && r.HubOf != "" }

// InNamespace returns the reconciler that is in a namespace itself; nil where none is.
func InNamespace(name string) *Reconciler {
	return first(all, func(one *Reconciler) bool {
		return name != "" && (one.Namespace == name || slices.Contains(one.Reserved, name))
	})
}

// Kinds are those of all reconcilers, each once, and what brings Secrets.
func Kinds() []*Kind { return slices.Clone(kinds) }

// KindOf returns the kind of a group and a name; nil where it is none of [Kinds].
func KindOf(group, kind string) *Kind {
	return first(kinds, func(one *Kind) bool { return one.Group == group && one.Kind == kind })
}

// KindNamed returns the kind of a name, as records and references have it; nil where it is none of [Kinds], of which no two
// have one name.
func KindNamed(kind string) *Kind {
	return first(kinds, func(one *Kind) bool { return one.Kind == kind })
}

// Contexts are those of commit statuses that agents report by default.
func Contexts() []string {
	var contexts []string
	for _, one := range all {
		contexts = append(contexts, one.Agent.Contexts...)
	}
	return contexts
}

// OfGroup returns the reconciler of an API group; nil where none has it.
func OfGroup(group string) *Reconciler {
	return first(all, func(one *Reconciler) bool {
		own := one.Agent.Group
		return own != "" && (group == own || strings.HasSuffix(group, "."+own))
	})
}

// InstallersFolder returns the folder that a cluster follows, where a file is one that the installer of an agent has written
// for that.
func InstallersFolder(file string) (folder string, is bool) {
	for _, one := range all {
		if within := path.Dir(file); one.Agent.Synced != "" && path.Base(file) == one.Agent.Synced &&
			slices.Contains(one.Agent.Names, path.Base(within)) {
			return path.Dir(within), true
		}
	}
	return "", false
}

// IsOfFolders says whether objects of a kind are applied on the cluster whose folder has them: their agent's installer has
// it follow that. Those of others may come from anywhere.
func (k *Kind) IsOfFolders() bool {
	of := OfGroup(k.Group)
	return of != nil && of.Agent.Synced != ""
}

// Listed are those kinds of a reconciler whose objects say something about what runs, in the order in which they are to
// be read.
func (r *Reconciler) Listed() []Kind {
	return slices.DeleteFunc(slices.Clone(r.Kinds), func(kind Kind) bool { return !kind.Is(anyRole) })
}

// Hub returns the reconciler whose objects are on a hub.
func Hub() *Reconciler { return first(all, (*Reconciler).OnHub) }

// Listed are those of all reconcilers, each once and in an order in which they can be read.
func Listed() []Kind {
	var listed []Kind
	for _, one := range all {
		if !one.OnHub() { // whose kinds are those of Argo CD
			listed = append(listed, one.Listed()...)
		}
	}
	return listed
}

// IsTemplated says whether the objects of a kind make others by a template that these can be compared with.
func IsTemplated(kind string) bool {
	found := KindNamed(kind)
	return found != nil && found.Template != ""
}

// IsReconciled says whether the status of objects of a kind shows the verdict of an assignment whose folder has them.
func IsReconciled(group, kind string) bool { return KindOf(group, kind).isReconciled() }

func (k *Kind) isReconciled() bool {
	return k.Is(Consumer|Supplier) || k.Is(Maker) && slices.ContainsFunc(k.Makes, func(made string) bool {
		return KindNamed(made).Is(Consumer)
	})
}
