package changes

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// causeSet is a sorted list of causes. Equal lists are the same *causeSet.
type causeSet struct {
	number int
	causes []cause
	kinds  string // the kinds of the causes: equal for sets of the same kinds
}

// byHand says whether drift is the only cause.
func (c *causeSet) byHand() bool { return len(c.causes) == 1 && c.causes[0].kind == byHand }

// explainer finds the causes of changes. It keeps its answers, since the same objects reach most folders of a plan.
type explainer struct {
	*reach
	notes      *Notes
	reasonSets map[string]int
	sets       [][]*reason
	numbers    map[*reason]int
	known      map[question]*causeSet
	causeSets  map[string]*causeSet
}

// question is all that the causes of a change depend on.
type question struct {
	reasons int
	role    role
	key     *keyChange
	drift   string
	back    string
}

func newExplainer(r *reach, notes *Notes) *explainer {
	return &explainer{
		reach: r, notes: notes, reasonSets: map[string]int{}, numbers: map[*reason]int{},
		known: map[question]*causeSet{}, causeSets: map[string]*causeSet{},
	}
}

// reasonsOf returns the number of the set of reasons that reach a folder.
func (e *explainer) reasonsOf(key assignmentKey) int {
	var numbers []int
	found := e.reasonsFor(key)
	for _, one := range found {
		number, seen := e.numbers[one]
		if !seen {
			number = len(e.numbers)
			e.numbers[one] = number
		}
		numbers = append(numbers, number)
	}
	slices.Sort(numbers)
	name := make([]byte, 0, 4*len(numbers))
	for _, number := range slices.Compact(numbers) {
		name = append(strconv.AppendInt(name, int64(number), 36), ' ')
	}
	set, seen := e.reasonSets[string(name)]
	if !seen {
		set = len(e.sets)
		e.reasonSets[string(name)] = set
		e.sets = append(e.sets, found)
	}
	return set
}

// explain returns the causes of a change of a key in a file.
func (e *explainer) explain(asked question) *causeSet {
	if e.known[asked] == nil {
		e.known[asked] = e.causesOf(asked)
	}
	return e.known[asked]
}

func (e *explainer) causesOf(asked question) *causeSet {
	if e.notes.RolledBack != "" {
		return e.set([]cause{{kind: byRollback, name: e.notes.RolledBack}})
	}
	if asked.back != "" {
		return e.set([]cause{{kind: byRollback, name: asked.back}})
	}
	best := fitNone
	var causes []cause
	for _, one := range e.sets[asked.reasons] {
		switch fit := one.rule(one.object, asked.role, asked.key); {
		case fit > best:
			best, causes = fit, []cause{one.object.cause}
		case fit == best && fit > fitNone:
			causes = append(causes, one.object.cause)
		}
	}
	switch {
	case asked.drift != "" && best < fitLikely:
		causes = []cause{{kind: byHand, name: asked.drift}}
	case best == fitNone && e.notes.HandedOver != "":
		causes = []cause{{kind: byName}}
	case best == fitNone && e.differences != nil && !e.any && e.before.Provider == "":
		causes = []cause{{kind: byProvider}}
	}
	return e.set(causes)
}

// moved returns why a folder is added or removed.
func (e *explainer) moved(folder *Folder) *causeSet {
	key := assignmentKey{folder.Host, folder.DeploymentTarget}
	switch {
	case e.notes.RolledBack != "":
		return e.set([]cause{{kind: byRollback, name: e.notes.RolledBack}})
	case folder.Back != "":
		return e.set([]cause{{kind: byRollback, name: folder.Back}})
	case folder.Location != "":
		return e.set(nil)
	case e.former[key] != nil && e.current[key] != nil || folder.Drift != "" && e.causesOfAssignment(key, folder.Added) == nil:
		if folder.Drift == "" {
			return e.set(nil)
		}
		return e.set([]cause{{kind: byHand, name: folder.Drift}})
	}
	return e.set(e.causesOfAssignment(key, folder.Added))
}

func (e *explainer) set(causes []cause) *causeSet {
	causes = slices.Clone(causes)
	slices.SortFunc(causes, func(a, b cause) int {
		return cmp.Or(cmp.Compare(kindOrder[a.kind], kindOrder[b.kind]), cmp.Compare(a.name, b.name), cmp.Compare(a.how, b.how))
	})
	causes = slices.Compact(causes)
	var name, kinds strings.Builder
	last := kind("-")
	for _, one := range causes {
		name.WriteString(strconv.Quote(string(one.kind)+"\x00"+one.name) + one.how)
		if one.kind != last {
			kinds.WriteString(string(one.kind) + ",")
			last = one.kind
		}
	}
	if e.causeSets[name.String()] == nil {
		e.causeSets[name.String()] = &causeSet{len(e.causeSets), causes, kinds.String()}
	}
	return e.causeSets[name.String()]
}

// union is the causes of several sets.
func (e *explainer) union(sets []*causeSet) *causeSet {
	var all []cause
	for _, set := range sets {
		all = append(all, set.causes...)
	}
	return e.set(all)
}

// maxCauses is how many causes a line names.
const maxCauses = 3

// text is the end of a line: `, by config containers "east", "west"`; "" without causes.
func (c *causeSet) text() string {
	var b strings.Builder
	for i, one := range c.causes {
		if i == maxCauses {
			b.WriteString(" and " + strconv.Itoa(len(c.causes)-i) + " more")
			break
		}
		first := i == 0 || c.causes[i-1].kind != one.kind
		several := first && i+1 < len(c.causes) && c.causes[i+1].kind == one.kind
		b.WriteString(", ")
		if i == 0 && one.kind != byHand {
			b.WriteString("by ")
		}
		b.WriteString(one.text(first, several))
	}
	return b.String()
}

// text is the name of a cause, with its kind for the first one of the kind.
func (c cause) text(first, several bool) string {
	switch c.kind {
	case byRollback:
		return "rollback to commit " + word(c.name)
	case byAssignments:
		return "the explicit assignments"
	case byHydration:
		return "the hydration settings"
	case byRepo:
		return "gitops_repo"
	case byName:
		return "the new name of the owner"
	case byProvider:
		return "a new version of the provider"
	case byHand:
		return word(c.name)
	}
	text := quoted(c.name)
	if c.how != "" {
		text += " (" + c.how + ")"
	}
	if !first {
		return text
	}
	if several {
		return plural(c.kind) + " " + text
	}
	return string(c.kind) + " " + text
}

func plural(k kind) string {
	switch k {
	case byPolicy:
		return "target policies"
	case byPlacement:
		return "placement of target policies"
	}
	return string(k) + "s"
}
