package onboarding

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ObjectState is the difference between an object and the applied one.
type ObjectState string

// The states of objects.
const (
	Same        ObjectState = "same"
	Gone        ObjectState = "gone"      // not on the cluster
	Changed     ObjectState = "changed"   // has other content
	Unmanaged   ObjectState = "unmanaged" // has the content, but not managed by Flotilla
	Foreign     ObjectState = "foreign"   // another manager has some of its fields
	Terminating ObjectState = "terminating"
	Refused     ObjectState = "refused"
)

// ObjectDrift is the state of an object that should be on the cluster.
type ObjectDrift struct {
	State  ObjectState `json:"state"`
	Fields []string    `json:"fields,omitempty"` // paths of fields that differ or that others manage
	By     []string    `json:"by,omitempty"`     // their field managers, if known
}

// compareObject returns the drift of an object.
func compareObject(object *agent.StagedObject, seen SeenObject) ObjectDrift {
	managers, fields := splitConflicts(seen.Conflicts)
	switch {
	case kube.ReasonOf(seen.Err) == kube.ReasonConflict:
		return ObjectDrift{State: Foreign, Fields: fields, By: managers}
	case seen.Err != nil:
		return ObjectDrift{State: Refused}
	case seen.Live == nil:
		return ObjectDrift{State: Gone}
	case isTerminating(seen.Live):
		return ObjectDrift{State: Terminating}
	case seen.DryRun == nil && isSecret(object):
		if lost := lostData(prepareForApply(object.Unstructured, false, ""), seen.Live); len(lost) > 0 {
			return ObjectDrift{State: Changed, Fields: lost}
		}
		return ObjectDrift{State: Same}
	case seen.DryRun == nil:
		return ObjectDrift{State: Gone} // its kind was removed, and the object with it
	}
	differences := Differences(seen.Live, seen.DryRun)
	for _, field := range addedFields(object, seen.Live) {
		differences, managers = append(differences, field.Path), append(managers, managersOf(seen.Live, field.Steps())...)
	}
	if len(differences) > 0 {
		slices.Sort(differences)
		slices.Sort(managers)
		return ObjectDrift{State: Changed, Fields: differences, By: slices.Compact(managers)}
	}
	if !sameOwnership(seen.Live, seen.DryRun) {
		return ObjectDrift{State: Unmanaged}
	}
	return ObjectDrift{State: Same}
}

func splitConflicts(conflicts []kube.Conflict) (managers, fields []string) {
	for _, conflict := range conflicts {
		managers, fields = append(managers, conflict.Manager), append(fields, conflict.Field)
	}
	slices.Sort(managers)
	slices.Sort(fields)
	return slices.Compact(managers), slices.Compact(fields)
}

// String returns a predicate such as "is gone"; "" for an object as applied.
func (f ObjectDrift) String() string {
	by := ""
	if len(f.By) > 0 {
		by = ", by " + wording.List(wording.Quoted(f.By), wording.Named)
	}
	switch f.State {
	case Gone:
		return "is gone"
	case Changed:
		return wording.List(f.Fields, wording.Named) + " changed" + by
	case Foreign:
		return wording.List(f.Fields, wording.Named) + " is managed by " + wording.List(wording.Quoted(f.By), wording.Named)
	case Unmanaged:
		return "is not managed by Flotilla any more"
	case Terminating:
		return "is being deleted"
	case Refused:
		return "is refused by the cluster"
	}
	return ""
}

// Line returns a line about an object.
func (f ObjectDrift) Line(id agent.ID) string {
	if f.State == Changed || f.State == Foreign {
		return id.String() + ": " + f.String()
	}
	return id.String() + " " + f.String()
}

// Drift has the objects of an agent that are not as applied.
type Drift struct {
	UID      string                 `json:"uid,omitempty"`      // of the cluster
	Findings map[string]ObjectDrift `json:"findings,omitempty"` // by name of the object
}

// FindDrift returns the drift of an agent on a cluster.
func FindDrift(objects []agent.StagedObject, look Inspection) Drift {
	drift := Drift{UID: look.UID, Findings: map[string]ObjectDrift{}}
	for i := range objects {
		id := objects[i].ID()
		if finding := compareObject(&objects[i], look.Seen[id]); finding.State != Same {
			drift.Findings[id.String()] = finding
		}
	}
	return drift
}

// Changes describes an apply in lines: removals, additions, changes of the configuration, drift. before are the objects
// of the last apply.
func Changes(before, after []agent.StagedObject, drift map[string]ObjectDrift, records []Record) []string {
	former, wanted := byID(before), byID(after)
	var removed, added, changed, drifted []string
	installed := 0
	for i := range records {
		if _, stays := wanted[records[i].ID()]; !stays {
			switch id := records[i].ID().String(); {
			case records[i].Partial:
				removed = append(removed, id+" loses what Flotilla has set in it")
			case records[i].Created:
				removed = append(removed, id+" is removed")
			default:
				removed = append(removed, id+" is left, since it was there before")
			}
		}
	}
	for i := range after {
		id := after[i].ID()
		old, was := former[id]
		switch finding, isDrift := drift[id.String()]; {
		case !was && after[i].Part == agent.Install:
			installed++
		case !was:
			added = append(added, id.String()+" is applied")
		case isDrift:
			drifted = append(drifted, finding.Line(id))
		default:
			if fields := Differences(old.Unstructured, after[i].Unstructured); len(fields) > 0 {
				changed = append(changed, id.String()+": "+wording.List(fields, wording.Named)+" "+wording.OneOrMany(len(fields), "changes", "change"))
			}
		}
	}
	if installed > 0 {
		added = append([]string{"install: " + wording.Count(installed, "object is", "objects are") + " applied"}, added...)
	}
	slices.Sort(removed)
	return slices.Concat(removed, added, changed, drifted)
}

func byID(objects []agent.StagedObject) map[agent.ID]*agent.StagedObject {
	found := make(map[agent.ID]*agent.StagedObject, len(objects))
	for i := range objects {
		found[objects[i].ID()] = &objects[i]
	}
	return found
}
