package values

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/google/cel-go/cel"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/expression"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/repository"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// settings are the configuration without the fleet.
type settings struct {
	rollout  *rollout.Settings
	holds    []rollout.FolderHold
	wanted   rollout.ByCluster
	released rollout.ByCluster
	proof    *expression.Expression // may be nil
	evidence repository.GivenEvidence
	known    bool // except the wanted value
}

func (m *rolloutModel) decode(diagnostics *diag.Diagnostics) settings {
	s := settings{known: !m.Name.IsUnknown() && !m.Proof.IsUnknown()}
	repository.CheckOwnerName(m.Name, diagnostics)
	given := map[string]any{}
	for name, value := range map[string]attr.Value{
		"stages": m.Stages, "on_failure": m.OnFailure, "failed_for": m.FailedFor, "progress_deadline": m.ProgressDeadline, "unknown": m.Unknown,
		"windows": m.Windows, "approvals": m.Approvals, "expedite": m.Expedite,
	} {
		if plain := tfvalue.Plain(value); plain != nil {
			given[name] = plain
		}
	}
	decoded, known, findings := rollout.Decode(given)
	tfvalue.AddFindings(diagnostics, path.Empty(), "Invalid rollout", findings)
	s.rollout, s.known = decoded, s.known && known
	if tfvalue.Plain(m.Holds) != nil {
		holds, known, findings := rollout.DecodeHolds(tfvalue.Plain(m.Holds))
		tfvalue.AddFindings(diagnostics, path.Root("holds"), "Invalid holds", tfvalue.Inner(findings))
		s.holds, s.known = holds, s.known && known
	}
	s.wanted = decodeByCluster("wanted", m.Wanted, diagnostics)
	s.released = decodeByCluster("released", m.Released, diagnostics)
	s.known = s.known && !s.released.Unknown
	if s.evidence = repository.DecodeEvidence(m.Evidence, diagnostics); s.evidence.Known && len(s.evidence.List) == 0 {
		diagnostics.AddAttributeError(path.Root("evidence"), "No evidence", "A rollout needs evidence, which has its time: set evidence = "+
			"data.flotilla_cluster_facts.….evidence. That of a flotilla_compliance with feedback = {} asks no cluster, and only time counts.")
	}
	s.checkMeasurements(diagnostics)
	s.known = s.known && s.evidence.Known
	s.proof = m.compileProof(diagnostics)
	if s.proof != nil && s.evidence.Known && len(s.evidence.List) > 0 && len(s.facts()) == 0 {
		diagnostics.AddAttributeError(path.Root("proof"), "No facts",
			"The proof is about the facts of clusters, and evidence has none: add data.flotilla_cluster_facts.….evidence to it, or remove proof.")
	}
	return s
}

// compileProof returns nil without a proof, or after an error.
func (m *rolloutModel) compileProof(diagnostics *diag.Diagnostics) *expression.Expression {
	if m.Proof.IsNull() || m.Proof.IsUnknown() {
		return nil
	}
	language, err := expression.New([]expression.Variable{{Name: "value", Type: cel.DynType}, {Name: "facts", Type: cel.DynType}})
	if err != nil {
		diagnostics.AddAttributeError(path.Root("proof"), "Invalid proof", tfvalue.Sentence(err.Error()))
		return nil
	}
	compiled, wrong := language.Compile(m.Proof.ValueString(), cel.BoolType)
	if compiled != nil {
		for _, name := range compiled.Fields("facts") {
			if _, known := facts.FindFact(name); !known {
				wrong = append(wrong, fmt.Sprintf("asks for facts.%s, and there is no such fact%s", name, fleet.DidYouMean(name, facts.Names())))
			}
		}
	}
	for _, problem := range wrong {
		diagnostics.AddAttributeError(path.Root("proof"), "Invalid proof", tfvalue.Sentence("proof "+problem))
	}
	if len(wrong) > 0 {
		return nil
	}
	return compiled
}

// byCluster is the only attribute of an object with a value per cluster.
const byCluster = "by_cluster"

// elements returns values by cluster; false if all share one.
func elements(value types.Dynamic) (map[string]attr.Value, bool) {
	attributes := entriesOf(value.UnderlyingValue())
	if _, is := attributes[byCluster]; !is || len(attributes) != 1 {
		return nil, false
	}
	of := attributes[byCluster]
	if dynamic, ok := of.(basetypes.DynamicValue); ok {
		of = dynamic.UnderlyingValue()
	}
	return entriesOf(of), true
}

func entriesOf(value attr.Value) map[string]attr.Value {
	switch value := value.(type) {
	case basetypes.ObjectValue:
		return value.Attributes()
	case basetypes.MapValue:
		return value.Elements()
	}
	return nil
}

func decodeByCluster(attribute string, value types.Dynamic, diagnostics *diag.Diagnostics) rollout.ByCluster {
	plain := tfvalue.Plain(value)
	report := func(format string, arguments ...any) rollout.ByCluster {
		tfvalue.AddErrorf(diagnostics, path.Root(attribute), "Invalid "+attribute, format, arguments...)
		return rollout.ByCluster{}
	}
	if !fleet.IsKnown(plain) {
		return rollout.ByCluster{Unknown: true}
	}
	if plain == nil {
		return rollout.ByCluster{}
	}
	if object, ok := plain.(map[string]any); ok {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			if key == byCluster && len(object) > 1 {
				return report("%s must be the only key: it has a value for each cluster", byCluster)
			}
			if near := fleet.DidYouMean(key, []string{byCluster}); key != byCluster && near != "" && len(object) == 1 {
				return report("%s would be a value for all clusters%s", key, near)
			}
		}
	}
	if _, each := elements(value); !each {
		if problem := tfvalue.Fraction(plain); problem != "" {
			return report("%s %s", attribute, problem)
		}
		text, err := fleet.CanonicalJSON(plain)
		if err != nil {
			return report("%s", err)
		}
		return rollout.ByCluster{All: text}
	}
	given, ok := plain.(map[string]any)[byCluster].(map[string]any)
	if !ok {
		return report("%s must be a map of values, by the names of clusters", byCluster)
	}
	each := rollout.ByCluster{Each: make(map[string]string, len(given))}
	for _, cluster := range slices.Sorted(maps.Keys(given)) {
		if given[cluster] == nil {
			return report("%s[%q] is null: a cluster always has a value", byCluster, cluster)
		}
		if problem := tfvalue.Fraction(given[cluster]); problem != "" {
			return report("%s[%q] %s", byCluster, cluster, problem)
		}
		text, err := fleet.CanonicalJSON(given[cluster])
		if err != nil {
			return report("%s[%q]: %s", byCluster, cluster, err)
		}
		each.Each[cluster] = text
	}
	return each
}

// checkNames finds clusters that the fleet lacks, or that have no wanted value.
func (s *settings) checkNames(name string, hosts map[string]*rollout.FleetHost, diagnostics *diag.Diagnostics) {
	wanted := folder.Trees{}
	for cluster := range hosts {
		folder.Put(wanted, folder.Key{Host: cluster, DeploymentTarget: name}, "")
	}
	ofRollout, ofHolds := rollout.CheckNames(s.rollout, s.holds, hosts, wanted, nil)
	tfvalue.AddFindings(diagnostics, path.Empty(), "Invalid rollout", ofRollout)
	for _, finding := range ofHolds { // it may leave the fleet before its hold
		diagnostics.AddAttributeWarning(path.Root("holds"), "Hold matches nothing", tfvalue.Sentence(finding.String()))
	}
	clusters := slices.Sorted(maps.Keys(hosts))
	for attribute, of := range map[string]rollout.ByCluster{"wanted": s.wanted, "released": s.released} {
		for _, cluster := range slices.Sorted(maps.Keys(of.Each)) {
			if hosts[cluster] == nil {
				tfvalue.AddErrorf(diagnostics, path.Root(attribute), "Invalid "+attribute,
					"%s: the fleet has no cluster %q%s", byCluster, cluster, fleet.DidYouMean(cluster, clusters))
			}
		}
	}
	if s.wanted.Each == nil {
		return
	}
	if missing := slices.DeleteFunc(clusters, func(cluster string) bool { return s.wanted.Each[cluster] != "" }); len(missing) > 0 {
		diagnostics.AddAttributeError(path.Root("wanted"), "Invalid wanted",
			fmt.Sprintf("%s has no value for %s: each cluster of the fleet needs one.",
				byCluster, listed(missing)))
	}
}

func shown(text string) string {
	var value any
	if json.Unmarshal([]byte(text), &value) == nil {
		if plain, ok := value.(string); ok {
			text = plain
		}
	}
	return cut(text)
}

func (s *settings) facts() []*evidence.Facts {
	var all []*evidence.Facts
	for _, document := range s.evidence.List {
		if document.Facts != nil {
			all = append(all, document.Facts)
		}
	}
	return all
}

// observe reports whether a cluster runs a value, by the proof.
func (s *settings) observe(cluster, value string) rollout.Observed {
	observed := rollout.Observed{Message: "there are no facts of this cluster"}
	for _, document := range s.evidence.List {
		if document.Compliance != nil {
			of, ok := document.Compliance.Clusters[cluster]
			observed.Heard = observed.Heard || ok && of.Verdict != verdict.Unknown
		}
		if document.Measurements != nil {
			observed.Heard = observed.Heard || isMeasured(document.Measurements, cluster)
		}
	}
	for _, facts := range s.facts() {
		of := facts.Clusters[cluster]
		if of.Facts == nil {
			continue
		}
		observed.Heard = true
		if s.proof == nil {
			continue
		}
		if !observed.Known {
			observed.Known, observed.Has, observed.Message = true, true, ""
		}
		if has, why := s.proves(value, of.Facts); !has {
			observed.Has, observed.Message = false, why
		}
	}
	return observed
}

// checkMeasurements refuses hosts and assignments, which have no figure of a cluster.
func (s *settings) checkMeasurements(diagnostics *diag.Diagnostics) {
	for i, document := range s.evidence.List {
		if document.Measurements == nil {
			continue
		}
		for _, check := range document.Measurements.Checks {
			if check.Of != evidence.OfCluster && check.Of != evidence.OfFleet {
				at := s.evidence.At[i]
				tfvalue.AddErrorf(diagnostics, at, "Measurements of hosts or assignments",
					"%s: the check %q is of = %q: a rollout of values knows clusters, no hosts or assignments: use of = %q or %q",
					at, check.Name, check.Of, evidence.OfCluster, evidence.OfFleet)
			}
		}
	}
}

func isMeasured(of *evidence.Measurements, cluster string) bool {
	return slices.ContainsFunc(of.Checks, func(check evidence.Check) bool {
		figure, ok := check.Figures[cluster]
		return ok && figure.Message == "" && check.Of == evidence.OfCluster
	})
}

// proves returns the reason if it does not.
func (s *settings) proves(text string, facts map[string]any) (bool, string) {
	var value any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		return false, "the value cannot be read"
	}
	has, err := s.proof.Bool(map[string]any{"value": value, "facts": facts})
	switch {
	case err != nil:
		return false, err.Error()
	case !has:
		return false, "it is not true of the facts"
	}
	return true, ""
}

// reports looks up clusters in all evidence; nil without evidence about clusters.
func (s *settings) reports(in rollout.StepInput, given func(string, folder.Key) rollout.Report) func(string, folder.Key) rollout.Report {
	var knowing []evidence.Lookup
	for _, document := range s.evidence.List {
		if of := document.Compliance; of != nil && len(of.Clusters) > 0 {
			knowing = append(knowing, compliance(in, of))
		}
	}
	if s.proof != nil {
		knowing = append(knowing, given)
	}
	return s.evidence.Reports(in, slices.Clip(knowing)...)
}

// compliance looks up the reports of agents.
func compliance(in rollout.StepInput, of *observe.Evidence) evidence.Lookup {
	return func(cluster string, key folder.Key) rollout.Report {
		is := of.Clusters[cluster]
		report := rollout.Report{Known: true, Tree: in.Deployed[key.Host][key.DeploymentTarget], Status: is.Status}
		if is.Verdict != verdict.Unknown && !of.Time.After(in.Records[key].Changed) {
			report.Status = verdict.Status{Verdict: verdict.Progressing, Message: "it is older than the value of the cluster"}
		}
		return report
	}
}
