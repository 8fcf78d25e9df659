package constraint

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pods"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// subjectValues holds the CEL values of the fleet's objects, each created once.
type subjectValues struct {
	*language
	subjects    Subjects
	environment ref.Val

	workspaces []ref.Val // in the fleet's order
	hosts      []ref.Val // in the schedule's order
	targets    []ref.Val

	workspaceOf []ref.Val // by deployment target
	hostOf      []int32   // by assignment
	targetOf    []int32
}

func newValues(l *language, subjects Subjects) *subjectValues {
	v := &subjectValues{language: l, subjects: subjects, environment: types.String(subjects.Fleet.Environment)}
	scheduled := subjects.Schedule
	hosts, targets := make(map[*schedule.Host]int32, len(scheduled.Hosts)), make(map[*schedule.Target]int32, len(scheduled.Targets))
	for i, host := range scheduled.Hosts {
		hosts[host] = int32(i)
	}
	for i, target := range scheduled.Targets {
		targets[target] = int32(i)
	}
	v.hostOf, v.targetOf = make([]int32, len(scheduled.Assignments)), make([]int32, len(scheduled.Assignments))
	targetNames := make([][]string, len(scheduled.Hosts))
	for i, assignment := range scheduled.Assignments {
		host := hosts[assignment.Host]
		v.hostOf[i], v.targetOf[i] = host, targets[assignment.Target]
		targetNames[host] = append(targetNames[host], assignment.Target.Name)
	}
	clusters := map[string][]string{}
	for _, host := range scheduled.Hosts {
		if host.Cluster != nil {
			clusters[host.ClusterType.Name] = append(clusters[host.ClusterType.Name], host.Cluster.Name)
		}
	}
	v.hosts = make([]ref.Val, len(scheduled.Hosts))
	for i, host := range scheduled.Hosts {
		names := clusters[host.ClusterType.Name]
		if host.Cluster != nil {
			names = []string{host.Cluster.Name}
		}
		v.hosts[i] = v.object(v.vocabulary.host, hostSubject{host, objectsOf(v, v.vocabulary.taint, host.Taints), names, targetNames[i]})
	}
	hostValues := make([][]ref.Val, len(scheduled.Targets))
	for i := range scheduled.Assignments {
		target := v.targetOf[i]
		hostValues[target] = append(hostValues[target], v.hosts[v.hostOf[i]])
	}
	v.targets = make([]ref.Val, len(scheduled.Targets))
	ofWorkspace := map[string][]string{}
	for i, target := range scheduled.Targets {
		subject := targetSubject{Target: target, hosts: hostValues[i]}
		if target.Target.ManifestsPending {
			subject.manifests = subject.pending()
		} else {
			subject.manifests = v.object(v.vocabulary.manifests, &target.Target.Manifests)
		}
		v.targets[i] = v.object(v.vocabulary.target, subject)
		ofWorkspace[target.Workload.Workspace] = append(ofWorkspace[target.Workload.Workspace], target.Name)
	}
	byName := map[string]ref.Val{}
	for i := range subjects.Fleet.Workspaces {
		workspace := &subjects.Fleet.Workspaces[i]
		byName[workspace.Name] = v.workspace(workspace, ofWorkspace[workspace.Name])
		v.workspaces = append(v.workspaces, byName[workspace.Name])
	}
	v.workspaceOf = make([]ref.Val, len(scheduled.Targets))
	for i, target := range scheduled.Targets {
		name := target.Workload.Workspace
		if byName[name] == nil { // not described by the fleet
			byName[name] = v.workspace(&fleet.Workspace{Name: name}, ofWorkspace[name])
		}
		v.workspaceOf[i] = byName[name]
	}
	return v
}

func (v *subjectValues) object(c *class, subject any) ref.Val {
	o := &classObject{class: c, adapter: v.adapter, subject: subject}
	fields := make([]ref.Val, len(c.fields))
	for i := range fields {
		fields[i] = o.field(i)
	}
	o.fields = fields
	return o
}

func objectsOf[T any](v *subjectValues, c *class, subjects []T) []ref.Val {
	all := make([]ref.Val, len(subjects))
	for i := range subjects {
		all[i] = v.object(c, &subjects[i])
	}
	return all
}

func (v *subjectValues) workspace(workspace *fleet.Workspace, targets []string) ref.Val {
	return v.object(v.vocabulary.workspace, workspaceSubject{workspace, objectsOf(v, v.vocabulary.limit, workspace.LimitRange), targets})
}

func (v *subjectValues) config(snapshot *hydrate.Snapshot) any {
	if snapshot != nil && snapshot.Known {
		return snapshot.Values()
	}
	return v.unknownConfig(snapshot)
}

func (v *subjectValues) secrets(snapshot *hydrate.Snapshot) any {
	if snapshot == nil || !snapshot.Known {
		return v.unknownConfig(snapshot)
	}
	references := snapshot.Secrets()
	all := make(map[string]any, len(references))
	for key, reference := range references {
		all[key] = v.object(v.vocabulary.secret, reference)
	}
	return all
}

func (v *subjectValues) unknownConfig(snapshot *hydrate.Snapshot) ref.Val {
	var waits []string
	if snapshot != nil && v.subjects.Config != nil {
		for _, container := range snapshot.Containers() {
			if !v.subjects.Config.Known(container) {
				waits = append(waits, fmt.Sprintf("config container %q", container))
			}
		}
	}
	return newUnknown(cmp.Or(strings.Join(waits, ", "), "configuration values"))
}

func (v *subjectValues) pods(found []pods.Pod, kubernetesVersion string) ref.Val {
	made := make([]ref.Val, len(found))
	for i := range found {
		made[i] = &classObject{class: v.vocabulary.pod, adapter: v.adapter, subject: podSubject{&found[i], kubernetesVersion}}
	}
	return types.NewRefValList(v.adapter, made)
}

func containersOf(found []pods.Pod) []any {
	var all []any
	for _, pod := range found {
		for _, container := range pod.Containers {
			all = append(all, container)
		}
	}
	return all
}

type variables struct {
	*subjectValues
	workspace, host, target ref.Val
	assignment              ref.Val // lazy
	config, secrets         any     // lazy
	object                  *folderObject
	pods                    ref.Val // lazy, of the object

	of       *schedule.Assignment
	snapshot *hydrate.Snapshot
}

// ResolveName implements [interpreter.Activation].
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case "environment":
		return v.environment, true
	case "workspace":
		return v.workspace, true
	case "host":
		return v.host, true
	case "target":
		return v.target, true
	case "assignment":
		if v.assignment == nil {
			subject := assignmentSubject{v.of, v.snapshot, v.subjectValues}
			v.assignment = &classObject{class: v.vocabulary.assignment, adapter: v.adapter, subject: subject}
		}
		return v.assignment, true
	case "config":
		if v.config == nil {
			v.config = v.subjectValues.config(v.snapshot)
		}
		return v.config, true
	case "secrets":
		if v.secrets == nil {
			v.secrets = v.subjectValues.secrets(v.snapshot)
		}
		return v.secrets, true
	case "object":
		return v.object.value, true
	case "made_by":
		return string(v.object.madeBy), true
	case "pods":
		if v.pods == nil {
			v.pods = v.subjectValues.pods(v.object.pods(), v.of.Host.ClusterType.KubernetesVersion)
		}
		return v.pods, true
	case "containers":
		return containersOf(v.object.pods()), true
	case "images":
		return pods.Images(v.object.pods()), true
	}
	return nil, false
}

// Parent implements [interpreter.Activation].
func (v *variables) Parent() interpreter.Activation { return nil }

func (v *variables) assign(i int) {
	target := v.targetOf[i]
	v.host, v.target, v.workspace = v.hosts[v.hostOf[i]], v.targets[target], v.workspaceOf[target]
	v.of, v.snapshot = v.subjects.Schedule.Assignments[i], nil
	if v.subjects.Snapshots != nil {
		v.snapshot = v.subjects.Snapshots[i]
	}
	v.assignment, v.config, v.secrets, v.object, v.pods = nil, nil, nil, nil, nil
}

type adapter struct {
	*expression.Adapter
	vocabulary *vocabulary
}

// FindStructType implements [types.Provider].
func (a *adapter) FindStructType(name string) (*types.Type, bool) {
	if class, ok := a.vocabulary.all[name]; ok {
		return types.NewTypeTypeWithParam(class.kind), true
	}
	return a.Registry.FindStructType(name)
}

// FindStructFieldNames implements [types.Provider], for suggestions.
func (a *adapter) FindStructFieldNames(name string) ([]string, bool) {
	if class, ok := a.vocabulary.all[name]; ok {
		return class.names(), true
	}
	return a.Registry.FindStructFieldNames(name)
}

// FindStructFieldType implements [types.Provider]. Objects read their own fields, so unknown values stay unknown.
func (a *adapter) FindStructFieldType(name, fieldName string) (*types.FieldType, bool) {
	class, ok := a.vocabulary.all[name]
	if !ok {
		return a.Registry.FindStructFieldType(name, fieldName)
	}
	index, ok := class.index[fieldName]
	if !ok {
		return nil, false
	}
	return &types.FieldType{Type: class.fields[index].kind}, true
}

// NewValue always fails: rules cannot create objects.
func (a *adapter) NewValue(name string, fields map[string]ref.Val) ref.Val {
	if _, ok := a.vocabulary.all[name]; ok {
		return types.NewErr("objects of type %s cannot be made", name)
	}
	return a.Registry.NewValue(name, fields)
}

type classObject struct {
	class   *class
	adapter *adapter
	subject any
	fields  []ref.Val // nil if computed on access
}

func (o *classObject) field(index int) ref.Val {
	if o.fields != nil {
		return o.fields[index]
	}
	return o.adapter.NativeToValue(o.class.fields[index].of(o.subject))
}

// isSet reports whether a field is not empty. Unknown fields are set.
func (o *classObject) isSet(index int) bool {
	switch value := o.field(index).(type) {
	case types.String:
		return value != ""
	case traits.Sizer:
		return value.Size() != types.IntZero
	}
	return true
}

// Get reads a field of an object with dynamic type.
func (o *classObject) Get(name ref.Val) ref.Val {
	index, problem := o.indexOf(name)
	if problem != nil {
		return problem
	}
	return o.field(index)
}

// IsSet implements has().
func (o *classObject) IsSet(name ref.Val) ref.Val {
	index, problem := o.indexOf(name)
	if problem != nil {
		return problem
	}
	return types.Bool(o.isSet(index))
}

func (o *classObject) indexOf(name ref.Val) (int, ref.Val) {
	text, ok := name.(types.String)
	if !ok {
		return 0, types.MaybeNoSuchOverloadErr(name)
	}
	index, ok := o.class.index[string(text)]
	if !ok {
		return 0, types.NewErr("no such field '%s'", string(text))
	}
	return index, nil
}

// Equal compares identities first, then all fields.
func (o *classObject) Equal(other ref.Val) ref.Val {
	same, ok := other.(*classObject)
	if !ok || o.class != same.class {
		return types.False
	}
	if o == same {
		return types.True
	}
	for i := range o.class.fields {
		if equal := types.Equal(o.field(i), same.field(i)); equal != types.True {
			return equal
		}
	}
	return types.True
}

// ConvertToNative always fails.
func (o *classObject) ConvertToNative(wanted reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s cannot be converted to %v", o.class.name, wanted)
}

// ConvertToType accepts only the object's type.
func (o *classObject) ConvertToType(wanted ref.Type) ref.Val {
	switch wanted {
	case types.TypeType:
		return o.class.kind
	case o.class.kind:
		return o
	}
	return types.NewErr("type conversion error from '%s' to '%s'", o.class.name, wanted.TypeName())
}

// Type implements [ref.Val].
func (o *classObject) Type() ref.Type { return o.class.kind }

// Value implements [ref.Val].
func (o *classObject) Value() any { return o }

var _ interface {
	ref.Val
	traits.Indexer
	traits.FieldTester
} = (*classObject)(nil)

func newUnknown(waitsFor string) ref.Val {
	return types.NewUnknown(0, types.NewAttributeTrail(waitsFor))
}

func waitsFor(value *types.Unknown) string {
	var all []string
	for _, id := range value.IDs() {
		trails, _ := value.GetAttributeTrails(id)
		for _, trail := range trails {
			all = append(all, trail.Variable())
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), ", ")
}
