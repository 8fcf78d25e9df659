package render

import (
	"bytes"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// The files that a template writes for one deployment target differ between its hosts only in a few names. So the
// template is run once more with marks in place of the names, and for further hosts only the names are put where the
// marks were. Files of configuration are written in the same way for assignments with the same configuration. A check of
// one such file of a built-in template is enough for all, since the names are DNS labels in quotes and cannot change the
// structure. For files of one's own templates, see [check.shapedObjects].

// shapeKey is all that decides a file, except for the names in its slots.
type shapeKey struct {
	template      *compiledTemplate
	target        string // full name of the deployment target, or name of the workspace, ConfigMap or Secret
	environment   string
	owner         string
	configVersion string // of what is read of it
	parameters    string // of the cluster type, or its stores
	requires      string
}

// shape is a file in pieces.
type shape struct {
	pieces  [][]byte
	slots   []int       // the slot after each piece except the last
	checked atomic.Bool // [Templates.Check] has found nothing in it

	read    sync.Once  // by [check.shapedObjects]
	isValid bool       // it is certain that nothing is wrong in it
	objects []identity // in it, with marks for names
}

// noShape stands for a file that cannot be written by a shape.
var noShape = &shape{}

// slots are the names that are put into a shape: those of the assignment, and of its dependencies.
type slots []string

const (
	namespaceSlot  = iota
	objectSlot     // the name of the reconciler's objects
	hostSlot       // the host's label
	dependencySlot // the first of those of dependencies
)

// slotsOf are the names of an assignment.
func slotsOf(subject Subject) slots {
	assignment := subject.Assignment
	names := make(slots, dependencySlot, dependencySlot+len(assignment.Dependencies))
	names[namespaceSlot], names[objectSlot] = assignment.Namespace, objectName(
		assignment.Target,
		assignment.Host,
		assignment.Namespace,
		subject.Environment,
	)
	names[hostSlot] = LabelValue(assignment.Host.FirstName())
	for _, dependency := range assignment.Dependencies {
		names = append(names, objectName(dependency.Target, dependency.Host, dependency.Namespace, subject.Environment))
	}
	return names
}

// slotMark is the first part of the mark for a slot while a shape is made. No file has it by accident. A file that has
// it on purpose gets no shape.
const slotMark = "flotilla4f1d9c0a7be2635d8"

func mark(slot int) string { return slotMark + strconv.Itoa(slot) + "x" }

// slotOf returns the slot of a mark.
func slotOf(text string) (slot int, isMark bool) {
	number, begins := strings.CutPrefix(text, slotMark)
	if !begins {
		return 0, false
	}
	slot, err := strconv.Atoi(strings.TrimSuffix(number, "x"))
	return slot, err == nil
}

// shapeFrom splits a file at its marks. It returns noShape where the pieces with names in place of the marks are not
// the file that was rendered without marks.
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

// fill writes the file with names in the slots.
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

// matches says whether a file is the shape with these names in its slots.
func (s *shape) matches(content []byte, names slots) bool {
	for i, piece := range s.pieces {
		rest, ok := bytes.CutPrefix(content, piece)
		if !ok {
			return false
		}
		content = rest
		if i == len(s.slots) {
			return len(content) == 0
		}
		name := names[s.slots[i]]
		if len(content) < len(name) || string(content[:len(name)]) != name {
			return false
		}
		content = content[len(name):]
	}
	return false
}

// seen is what is known of files with the same key.
type shapeEntry struct {
	shape *shape               // nil: one assignment has had such a file
	first *schedule.Assignment // that one
}

// shapes keeps shapes, in shards. It is safe for concurrent use.
type shapeCache struct {
	once   sync.Once
	seed   maphash.Seed
	shards [64]boundedCache[shapeKey, shapeEntry]
}

// maxShapes is how many shapes a shard keeps.
const maxShapes = 4096

// with returns the shard that keeps what has a key.
func (s *shapeCache) with(key *shapeKey) *boundedCache[shapeKey, shapeEntry] {
	s.once.Do(func() { s.seed = maphash.MakeSeed() })
	return &s.shards[(maphash.String(s.seed, key.target)^maphash.String(s.seed, key.configVersion))%uint64(len(s.shards))]
}

// kept keeps a bounded number of values: all are forgotten when there would be more. It is safe for concurrent use.
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

// slotFields are the fields of the data that have a slot.
var slotFields = newSet("Namespace", "Name", "HostLabel")

// sharedFields are those that all assignments of a deployment target have in common on cluster types with the same
// parameters, and configFields those that they have in common with the same configuration.
var (
	sharedFields = newSet("DeploymentTargetName", "TargetLabel", "Environment", "Workspace", "Workload", "Labels", "Manifests")
	configFields = newSet("ConfigData", "ConfigVersion")
)

// hasShape says whether what a template of the user's own reads, but for names that it only writes, is decided by the key
// of a shape.
func hasShape(template *compiledTemplate, reads map[string]bool) bool {
	for field := range reads {
		if !sharedFields[field] && (template.kind != "config" || !configFields[field]) {
			return false
		}
	}
	return !template.mutates
}

// shapeKeyOf returns the key of a template's file; ok is false for a file that has no shape.
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
		if arranged := t.roles[assignment]; arranged != nil && arranged.project != nil {
			return key, false
		}
		if host.reconciler.OnHub() && (assignment.Host.Cluster != nil || t.rendersProject(assignment)) {
			return key, false // names that no slot is for
		}
		key.target, key.parameters, key.owner = assignment.Target.Name, host.parametersID, subject.Owner
		if len(assignment.Requires) > 0 {
			key.requires = strings.Join(assignment.Requires, " ")
		}
		if forms := assignment.Target.Target.Manifests.ConfigAs; len(forms) > 0 {
			key.configVersion = subject.ValuesVersion
			_, amongValues := forms.Values() // stores decide whether references are
			return key, subject.ValuesVersion != "" && (!amongValues || len(subject.Secrets) == 0)
		}
	}
	return key, true
}
