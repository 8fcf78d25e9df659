package evidence

import (
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Lookup returns a cluster's report about a folder.
type Lookup = func(cluster string, key folder.Key) rollout.Report

const sourceFacts = "facts"

// Reports returns a lookup of the merged reports of all documents, not safe for concurrent use; nil if none describes
// anything: then only time counts. knowing are the lookups of the flotilla_compliance documents with clusters. If they
// disagree about the content, the cluster lacks the wanted one; if none knows it, the cluster is assumed to run the
// content written before the evidence.
func (l List) Reports(in rollout.StepInput, knowing ...Lookup) Lookup {
	r := &reader{
		in:       in,
		knowing:  knowing,
		suspects: newSuspects(in),
		rests:    rests{in: in, hosts: map[string][]string{}, known: map[restOf]*Rest{}},
	}
	for _, d := range l {
		if d.Facts != nil && len(d.Facts.Clusters) > 0 {
			r.facts = append(r.facts, d.Facts)
		}
		if d.Measurements != nil {
			for i := range d.Measurements.Checks {
				r.checks = append(r.checks, timedCheck{&d.Measurements.Checks[i], d.Measurements.Time})
			}
		}
	}
	switch {
	case len(r.facts)+len(r.checks) > 0 || len(knowing) > 1:
		return r.report
	case len(knowing) == 1:
		return knowing[0]
	}
	return nil
}

type reader struct {
	in       rollout.StepInput
	knowing  []Lookup
	facts    []*Facts
	checks   []timedCheck
	rests    rests
	suspects *suspects
	opinions []opinion
}

type timedCheck struct {
	*Check
	time time.Time
}

func (r *reader) report(cluster string, key folder.Key) rollout.Report {
	wanted := r.in.Wanted[key.Host][key.DeploymentTarget]
	var report rollout.Report
	r.opinions = r.opinions[:0]
	for _, lookup := range r.knowing {
		one := lookup(cluster, key)
		switch {
		case one.Known && (!report.Known || report.Tree == wanted):
			report.Known, report.Tree = true, one.Tree
		case !one.Known && one.Verdict != verdict.Failed: // it may be about other content
			one.Verdict = verdict.Unknown
		}
		r.opinions = append(r.opinions, opinion{Status: one.Status, source: one.Source})
	}
	others := len(r.opinions)
	changed := r.changed(key)
	r.addFacts(cluster, key, changed)
	r.addFigures(cluster, key, changed)
	if len(r.opinions) == 0 { // such as figures of a removed assignment
		r.opinions = append(r.opinions, opinion{Status: verdict.Status{Verdict: verdict.Progressing}})
	}
	decided := agree(r.opinions)
	report.Status, report.Source = decided.Status, decided.source
	if !report.Known && isHeard(r.opinions[others:], decided.Verdict) {
		report.Known, report.Tree = true, r.written(key, changed)
	}
	return report
}

// isHeard reports whether other sources than agents describe the content of the cluster.
func isHeard(opinions []opinion, decided verdict.Verdict) bool {
	return slices.ContainsFunc(opinions, func(o opinion) bool {
		return o.Verdict != verdict.Unknown && decided != verdict.Unknown && (decided != verdict.Failed || o.Verdict == verdict.Failed)
	})
}

// addFacts adds the facts of a cluster, which may be in any of several documents.
func (r *reader) addFacts(cluster string, key folder.Key, changed time.Time) {
	if len(r.facts) == 0 {
		return
	}
	before, isOfRoot := len(r.opinions), !r.suspects.blames(OfCluster, cluster, key)
	for _, facts := range r.facts {
		if of, ok := facts.Clusters[cluster]; ok {
			o := opinion{Status: of.Status, source: sourceFacts}
			o.Message, o.OfRoot = strings.TrimSuffix(sourceFacts+": "+o.Message, ": "), isOfRoot
			r.add(o, facts.Time, changed)
		}
	}
	if len(r.opinions) == before {
		r.opinions = append(r.opinions, opinion{source: sourceFacts, Status: verdict.Status{
			Verdict: verdict.Unknown, Message: sourceFacts + ": there are none of this cluster", OfRoot: isOfRoot,
		}})
	}
}

// addFigures adds the judgements of checks. A removed assignment has no figure.
func (r *reader) addFigures(cluster string, key folder.Key, changed time.Time) {
	host := r.in.Hosts[key.Host]
	for _, check := range r.checks {
		if check.Of == OfAssignment && !r.in.Wanted.Has(key.Host, key.DeploymentTarget) {
			continue
		}
		said := check.Judge(subjectOf(check.Check, cluster, key), r.rests.rest(check.Check, key.DeploymentTarget))
		said.OfRoot = !r.suspects.blames(check.Of, cluster, key)
		r.add(opinion{
			source: check.Name, wide: check.Of != OfCluster && (check.Of == OfFleet || host == nil || !host.IsCluster), Status: said,
		}, check.time, changed)
	}
}

func (r *reader) add(o opinion, at, changed time.Time) {
	if o.Verdict != verdict.Unknown && !at.After(changed) {
		o.Status = verdict.Status{Verdict: verdict.Progressing, Message: o.source + ": it is older than what is deployed", OfRoot: o.OfRoot}
	}
	r.opinions = append(r.opinions, o)
}

// notYet is a tree that no folder has, for clusters not known to have the written content.
const notYet = "not yet"

// written returns the content known from earlier writes.
func (r *reader) written(key folder.Key, changed time.Time) string {
	switch {
	case r.in.Proposed || !r.in.Now.After(changed):
		return notYet
	case r.in.Found != nil:
		return r.in.Found[key.Host][key.DeploymentTarget]
	}
	return r.in.Deployed[key.Host][key.DeploymentTarget]
}

func (r *reader) changed(key folder.Key) time.Time {
	changed := r.in.Records[key].Changed
	if !changed.IsZero() || r.in.State == nil || r.in.State.Targets[key.DeploymentTarget] == nil {
		return changed
	}
	target := r.in.State.Targets[key.DeploymentTarget]
	if host := target.Hosts[key.Host]; host != nil && !host.Gone.IsZero() {
		return host.Gone
	}
	return target.Since
}

// rests finds hosts for comparison: without the change of a deployment target or, if all have it, proven ones.
type rests struct {
	in    rollout.StepInput
	of    map[string][]hostOf // by deployment target, including removals
	hosts map[string][]string // for comparison, by deployment target
	known map[restOf]*Rest
}

type hostOf struct {
	name string
	has  bool
}

type restOf struct {
	check  *Check
	target string
}

func (r *rests) rest(check *Check, target string) *Rest {
	if check.Of == OfFleet {
		return nil
	}
	asked := restOf{check, target}
	rest, known := r.known[asked]
	if known {
		return rest
	}
	var figures []Figure
	for _, host := range r.hostsOf(target) {
		subjects := r.in.Hosts[host].Clusters
		if check.Of != OfCluster {
			subjects = []string{subjectOf(check, "", folder.Key{Host: host, DeploymentTarget: target})}
		}
		for _, subject := range subjects {
			if figure, ok := check.Figures[subject]; ok {
				figures = append(figures, figure)
			}
		}
	}
	rest = Mean(figures)
	r.known[asked] = rest
	return rest
}

func (r *rests) hostsOf(target string) []string {
	if hosts, known := r.hosts[target]; known {
		return hosts
	}
	if r.of == nil {
		r.of = r.collect()
	}
	var without, proven []string
	var state *rollout.ChangeState
	if r.in.State != nil {
		state = r.in.State.Targets[target]
	}
	for _, host := range r.of[target] {
		switch {
		case !host.has:
			without = append(without, host.name)
		case state != nil && state.Hosts[host.name] != nil && state.Hosts[host.name].Proven:
			proven = append(proven, host.name)
		}
	}
	if len(without) == 0 {
		without = proven
	}
	slices.Sort(without)
	r.hosts[target] = without
	return without
}

func (r *rests) collect() map[string][]hostOf {
	of := map[string][]hostOf{}
	for name := range r.in.Hosts {
		wanted, deployed := r.in.Wanted[name], r.in.Deployed[name]
		for target, tree := range wanted {
			now, is := deployed[target]
			of[target] = append(of[target], hostOf{name, is && now == tree})
		}
		for target := range deployed {
			if _, is := wanted[target]; !is {
				of[target] = append(of[target], hostOf{name, false})
			}
		}
	}
	return of
}

func subjectOf(check *Check, cluster string, key folder.Key) string {
	switch check.Of {
	case OfCluster:
		return cluster
	case OfHost:
		return key.Host
	case OfAssignment:
		return key.String()
	}
	return ""
}

// suspects attributes a figure of a whole cluster, host or fleet to the written change under way there, unless there
// are several.
type suspects struct {
	byHost, byCluster map[string]suspect
	inFleet           suspect
}

type suspect struct {
	target  string
	several bool
}

func (s suspect) with(other suspect) suspect {
	switch {
	case s.target == "":
		return other
	case other.target == "":
		return s
	}
	return suspect{s.target, s.several || other.several || s.target != other.target}
}

func newSuspects(in rollout.StepInput) *suspects {
	s := &suspects{byHost: map[string]suspect{}, byCluster: map[string]suspect{}}
	if in.State == nil {
		return s
	}
	for name, target := range in.State.Targets {
		for host := range target.Hosts {
			wanted, deployed := in.Wanted[host][name], in.Deployed[host][name]
			if wanted == deployed && in.Hosts[host] != nil {
				s.byHost[host] = s.byHost[host].with(suspect{target: name})
			}
		}
	}
	for host, of := range s.byHost {
		s.inFleet = s.inFleet.with(of)
		for _, cluster := range in.Hosts[host].Clusters {
			s.byCluster[cluster] = s.byCluster[cluster].with(of)
		}
	}
	return s
}

func (s *suspects) blames(of SubjectKind, cluster string, key folder.Key) bool {
	var found suspect
	switch of {
	case OfAssignment:
		return true
	case OfCluster:
		found = s.byCluster[cluster]
	case OfHost:
		found = s.byHost[key.Host]
	case OfFleet:
		found = s.inFleet
	}
	return found.target == key.DeploymentTarget && !found.several
}

// opinion is the statement of one document about an assignment on a cluster.
type opinion struct {
	verdict.Status
	// source is the name of a check, or "facts"; "" for reports of agents.
	source string
	// wide marks a statement about more than this cluster, which proves no contact with it.
	wide bool
}

// agree merges the opinions of several documents about an assignment on a cluster:
//   - ready if every opinion is ready;
//   - failed if any opinion is failed;
//   - unknown if all statements about this cluster alone are unknown;
//   - progressing, which callers must wait for, if only some are unknown;
//   - otherwise the worst verdict.
//
// The time is the latest known, but for a failure only failures count. Source and message come from the deciding
// opinion.
func agree(opinions []opinion) opinion {
	var own, unknown, ownUnknown int
	var first, worst opinion // of the unknown ones, and of the others
	var latest time.Time
	for _, o := range opinions {
		if o.Verdict == "" {
			o.Verdict = verdict.Unknown
		}
		latest = verdict.Latest(latest, o.Since)
		if !o.wide {
			own++
		}
		if o.Verdict == verdict.Unknown {
			if unknown++; unknown == 1 || first.wide && !o.wide {
				first = o
			}
			if !o.wide {
				ownUnknown++
			}
			continue
		}
		worst = worse(worst, o)
	}
	switch {
	case worst.Verdict == verdict.Failed:
		return worst
	case unknown == len(opinions), own > 0 && ownUnknown == own:
		worst = first
	case unknown > 0 && worst.Verdict == verdict.Ready:
		worst = first
		worst.Verdict = verdict.Progressing
	case unknown > 0:
		worst.Verdict = verdict.Progressing
	}
	worst.Since = latest
	return worst
}

// worse is [verdict.Worst] for opinions; the zero value is none.
func worse(a, b opinion) opinion {
	if a.Verdict == "" {
		return b
	}
	status := verdict.Worst(a.Status, b.Status)
	if status.Verdict != a.Verdict || status.OfRoot != a.OfRoot {
		a = b
	}
	a.Status = status
	return a
}
