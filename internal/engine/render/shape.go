package render

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// A template's files for one deployment target differ between hosts only in a few names. A shape is a file with slots for
// these names, made by a second rendering with marks in their place. Files of configuration have shapes for equal
// configuration. One check covers all files of a built-in template, because names are quoted DNS labels. For users' templates
// see [folderCheck.readShape].

// shapeKey identifies a file except for its slots.
type shapeKey struct {
	template      *compiledTemplate
	target        string // or the workspace, ConfigMap or Secret
	environment   string
	owner         string
	configVersion string // if the file depends on it
	parameters    string // of the cluster type, or its stores
	requires      string
}

type shape struct {
	pieces  [][]byte
	slots   []int       // after each piece but the last
	checked atomic.Bool // [Templates.Check] found no mistake in a built-in template's file

	read        sync.Once          // by [folderCheck.readShape]
	isValid     bool               // certainly without mistakes
	isUnexposed bool               // without credentials
	objects     []objects.Identity // with marks for names
}

var noShape = &shape{}

// slots are the names of an assignment and of its dependencies.
type slots []string

const (
	namespaceSlot  = iota
	objectSlot     // name of the reconciler's objects
	hostSlot       // label of the host
	dependencySlot // of the first dependency
)

func slotsOf(subject Subject) slots {
	assignment := subject.Assignment
	names := make(slots, dependencySlot, dependencySlot+len(assignment.Dependencies))
	names[namespaceSlot], names[objectSlot] = assignment.Namespace, objectName(assignment.Target, assignment.Host,
		assignment.Namespace, subject.Environment)
	names[hostSlot] = LabelValue(assignment.Host.FirstName())
	for _, dependency := range assignment.Dependencies {
		names = append(names, objectName(dependency.Target, dependency.Host, dependency.Namespace, subject.Environment))
	}
	return names
}

// slotMark begins a mark. A file that has it on purpose gets no shape.
const slotMark = "flotilla4f1d9c0a7be2635d8"

func mark(slot int) string { return slotMark + strconv.Itoa(slot) + "x" }

func slotOf(text string) (slot int, isMark bool) {
	number, begins := strings.CutPrefix(text, slotMark)
	if !begins {
		return 0, false
	}
	slot, err := strconv.Atoi(strings.TrimSuffix(number, "x"))
	return slot, err == nil
}

// shapeFrom splits a file at its marks. It returns noShape if filling does not give the plain file.
func shapeFrom(marked, plain []byte, names slots) *shape {
	made := &shape{}
	for {
		before, rest, found := bytes.Cut(marked, []byte(slotMark))
		made.pieces = append(made.pieces, bytes.Clone(before))
		if !found {
			break
		}
		number, after, ended := bytes.Cut(rest, []byte("x"))
		slot, err := strconv.Atoi(string(number))
		if !ended || err != nil || slot < 0 || slot >= len(names) {
			return noShape
		}
		made.slots = append(made.slots, slot)
		marked = after
	}
	if !bytes.Equal(made.fill(names), plain) {
		return noShape
	}
	return made
}

func (s *shape) fill(names slots) []byte {
	size := 0
	for _, piece := range s.pieces {
		size += len(piece)
	}
	for _, slot := range s.slots {
		size += len(names[slot])
	}
	content := make([]byte, 0, size)
	for i, piece := range s.pieces {
		content = append(content, piece...)
		if i < len(s.slots) {
			content = append(content, names[s.slots[i]]...)
		}
	}
	return content
}

type shapeEntry struct {
	shape *shape // nil at the first use
	first *schedule.Assignment
}

// shapeCache is safe for concurrent use.
type shapeCache struct {
	once   sync.Once
	seed   maphash.Seed
	shards [64]boundedCache[shapeKey, shapeEntry]
}

const maxShapes = 4096

func (s *shapeCache) shardOf(key *shapeKey) *boundedCache[shapeKey, shapeEntry] {
	s.once.Do(func() { s.seed = maphash.MakeSeed() })
	return &s.shards[(maphash.String(s.seed, key.target)^maphash.String(s.seed, key.configVersion))%uint64(len(s.shards))]
}

// boundedCache drops all values once it is full. It is safe for concurrent use.
type boundedCache[K comparable, V any] struct {
	sync.RWMutex
	all map[K]V
}

func (k *boundedCache[K, V]) get(key *K) V {
	k.RLock()
	defer k.RUnlock()
	return k.all[*key]
}

func (k *boundedCache[K, V]) keep(key *K, value V, most int) {
	k.Lock()
	defer k.Unlock()
	if k.all == nil || len(k.all) >= most {
		k.all = map[K]V{}
	}
	k.all[*key] = value
}

// slotFields have a slot.
var slotFields = newSet("Namespace", "Name", "HostLabel")

// sharedFields are equal for all assignments of a deployment target on cluster types with equal parameters, configFields for
// equal configuration.
var (
	sharedFields = newSet("DeploymentTargetName", "TargetLabel", "Environment", "Workspace", "Workload", "Labels", "Manifests")
	configFields = newSet("ConfigData", "ConfigVersion")
)

// hasShape reports whether a shape's key and slots determine all fields that a user's template reads.
func hasShape(template *compiledTemplate, reads map[string]bool) bool {
	for field := range reads {
		if !sharedFields[field] && (template.kind != "config" || !configFields[field]) {
			return false
		}
	}
	return !template.mutates
}

func (t *Templates) shapeKeyOf(host *hostTemplates, template *compiledTemplate, subject Subject) (key shapeKey, ok bool) {
	assignment := subject.Assignment
	key = shapeKey{template: template, environment: subject.Environment}
	if !template.isBuiltin {
		key.target, key.parameters = assignment.Target.Name, host.parametersID
		if template.kind == "config" {
			key.configVersion = subject.ConfigVersion
		}
		return key, template.hasShape && (template.kind != "config" || subject.ConfigVersion != "")
	}
	switch template.kind {
	case "namespace":
		key.target = assignment.Target.Name
	case "policy":
		key.target = assignment.Target.Workload.Workspace
	case "config":
		key.configVersion = subject.ValuesVersion
		key.target, _ = assignment.Target.Target.Manifests.ConfigAs.ConfigMap()
		return key, subject.ValuesVersion != ""
	case "secret":
		key.configVersion, key.parameters = subject.ConfigVersion, host.storesID
		key.target = secretName(assignment.Target.Target)
		_, amongValues := assignment.Target.Target.Manifests.ConfigAs.Values()
		return key, subject.ConfigVersion != "" && !amongValues
	case "reconciler":
		if role := t.roles[assignment]; role != nil && role.project != nil {
			return key, false
		}
		if host.reconciler.OnHub() && (assignment.Host.Cluster != nil || t.workspaceOf(assignment.Target.Workload.Workspace).project.Render) {
			return key, false // has names without a slot
		}
		key.target, key.parameters, key.owner = assignment.Target.Name, host.parametersID, subject.Owner
		key.requires = strings.Join(assignment.Requires, " ")
		if forms := assignment.Target.Target.Manifests.ConfigAs; len(forms) > 0 {
			key.configVersion = subject.ValuesVersion
			_, amongValues := forms.Values() // the delivery of references depends on stores
			return key, subject.ValuesVersion != "" && (!amongValues || len(subject.Secrets) == 0)
		}
	}
	return key, true
}
