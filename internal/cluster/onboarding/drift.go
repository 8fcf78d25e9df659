package onboarding

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// State says how an object on a cluster differs from what was applied.
type State string

// The states of objects.
const (
	Same        State = "same"        // as it was applied
	Gone        State = "gone"        // the cluster does not have it
	Changed     State = "changed"     // has other content
	Unmanaged   State = "unmanaged"   // has the content, but Flotilla does not manage it any more
	Foreign     State = "foreign"     // another manager has fields of it
	Terminating State = "terminating" // is being deleted
	Refused     State = "refused"     // the cluster does not take it
)

// Finding is the state of an object that should be on the cluster.
type Finding struct {
	State State `json:"state"`
	// Fields are the paths of the fields that differ, or that others manage.
	Fields []string `json:"fields,omitempty"`
	// By are the field managers that have changed or manage them, as far as they are known.
	By []string `json:"by,omitempty"`
}

// Find returns the finding about an object from what was seen of it.
func Find(object *agent.Object, seen Seen) Finding {
	managers, fields := split(seen.Conflicts)
	switch {
	case kube.ReasonOf(seen.Err) == kube.ReasonConflict:
		return Finding{State: Foreign, Fields: fields, By: managers}
	case seen.Err != nil:
		return Finding{State: Refused}
	case seen.Live == nil:
		return Finding{State: Gone}
	case isTerminating(seen.Live):
		return Finding{State: Terminating}
	case seen.DryRun == nil && isSecret(object):
		if lost := lostData(prepared(object.Unstructured, false, ""), seen.Live); len(lost) > 0 {
			return Finding{State: Changed, Fields: lost}
		}
		return Finding{State: Same}
	case seen.DryRun == nil:
		return Finding{State: Gone} // its kind was removed, and the object with it
	}
	differences := Differences(seen.Live, seen.DryRun)
	for _, field := range addedFields(object, seen.Live) {
		differences, managers = append(differences, field.Path), append(managers, managersOf(seen.Live, field.Steps())...)
	}
	if len(differences) > 0 {
		slices.Sort(differences)
		slices.Sort(managers)
		return Finding{State: Changed, Fields: differences, By: slices.Compact(managers)}
	}
	if !sameOwnership(seen.Live, seen.DryRun) {
		return Finding{State: Unmanaged}
	}
	return Finding{State: Same}
}

// split returns the managers and the fields of conflicts, each once and sorted.
func split(conflicts []kube.Conflict) (managers, fields []string) {
	for _, conflict := range conflicts {
		managers, fields = append(managers, conflict.Manager), append(fields, conflict.Field)
	}
	slices.Sort(managers)
	slices.Sort(fields)
	return slices.Compact(managers), slices.Compact(fields)
}

// String is the predicate of a sentence about the object, such as "is gone"; "" where the object is as it was applied.
func (f Finding) String() string {
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

// Line is a line about an object.
func (f Finding) Line(id agent.ID) string {
	if f.State == Changed || f.State == Foreign {
		return id.String() + ": " + f.String()
	}
	return id.String() + " " + f.String()
}

// Drift has the findings about an agent's objects, without those that are as they were applied.
type Drift struct {
	// UID is that of the cluster.
	UID string `json:"uid,omitempty"`
	// Findings are by the name of the object.
	Findings map[string]Finding `json:"findings,omitempty"`
}

// FindDrift returns the findings about the objects on a cluster.
func FindDrift(objects []agent.Object, look Look) Drift {
	drift := Drift{UID: look.UID, Findings: map[string]Finding{}}
	for i := range objects {
		id := objects[i].ID()
		if finding := Find(&objects[i], look.Seen[id]); finding.State != Same {
			drift.Findings[id.String()] = finding
		}
	}
	return drift
}

// Changes returns the lines about what an apply does: removals first, then what the configuration adds and changes,
// then what has changed on the cluster. before are the objects as they were last applied; none before the first apply.
func Changes(before, after []agent.Object, drift map[string]Finding, records []Record) []string {
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

func byID(objects []agent.Object) map[agent.ID]*agent.Object {
	found := make(map[agent.ID]*agent.Object, len(objects))
	for i := range objects {
		found[objects[i].ID()] = &objects[i]
	}
	return found
}
