package values

import (
	"encoding/json"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/evidence"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/rollout"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

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
			report.Status = verdict.Status{Verdict: verdict.Progressing, Message: "it is older than what was given"}
		}
		return report
	}
}
