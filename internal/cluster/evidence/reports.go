package evidence

import (
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"

	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
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
	for _, o := range opinions {
		if o.Verdict != verdict.Unknown && decided != verdict.Unknown && (decided != verdict.Failed || o.Verdict == verdict.Failed) {
			return true
		}
	}
	return false
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
