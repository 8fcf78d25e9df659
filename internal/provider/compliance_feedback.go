package provider

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
)

// feedback is the attribute feedback of flotilla_compliance.
type feedback struct {
	clusters bool
	options  kube.Options
	hub      string
	reports  []compliance.Report
	statuses *statusFeedback
}

// statusFeedback is its attribute commit_statuses.
type statusFeedback struct {
	context  string
	commits  int
	settings delivery.Settings
}

func (f *feedback) isEmpty() bool {
	return !f.clusters && f.hub == "" && f.statuses == nil && len(f.reports) == 0
}

var (
	feedbackAttributes = []string{"clusters", "hub", "commit_statuses", "reports"}
	askingAttributes   = []string{"deadline", "parallel"}
	statusesAttributes = []string{"context", "commits", "forge", "api_url"}
	reportAttributes   = []string{"cluster", "commit", "ready", "since", "message"}
	waitAttributes     = []string{"ready_percent", "timeout"}
)

// How far back commit statuses are read, unless somebody wants more or less, and at most.
const (
	defaultStatusCommits = 10
	maxStatusCommits     = 1000
)

// strictly reads an attribute whose type Terraform does not check.
type strictly struct {
	attribute   string
	diagnostics *diag.Diagnostics
}

func (s strictly) wrong(format string, arguments ...any) {
	s.diagnostics.AddAttributeError(path.Root(s.attribute), "Invalid "+s.attribute, sentence(fmt.Sprintf(format, arguments...)))
}

// object reads an object with no keys but those; what is null or not known yet is left out. ok is false for
// what is none.
func (s strictly) object(at string, given any, keys []string) (known map[string]any, ok bool) {
	object, ok := given.(map[string]any)
	if !ok {
		if given != nil && fleet.IsKnown(given) {
			s.wrong("%smust be an object: {%s}", at, strings.Join(keys, ", "))
		}
		return nil, false
	}
	known = map[string]any{}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch value := object[key]; {
		case !slices.Contains(keys, key):
			s.wrong("%sunknown attribute %q%s", at, key, fleet.DidYouMean(key, keys))
		case value == nil:
		case value == fleet.Unknown{}:
		default:
			known[key] = value
		}
	}
	return known, true
}

func (s strictly) text(at string, object map[string]any, key string) string {
	value, given := object[key]
	text, ok := value.(string)
	if given && !ok {
		s.wrong("%sattribute %s must be a text", at, key)
	}
	return text
}

// number reads a whole number between two bounds; otherwise is for one that is not given.
func (s strictly) number(at string, object map[string]any, key string, least, most, otherwise int) int {
	value, given := object[key]
	if !given {
		return otherwise
	}
	text, _ := value.(json.Number)
	number, err := strconv.Atoi(text.String())
	if err != nil || number < least || number > most {
		s.wrong("%sattribute %s must be a whole number from %d to %d", at, key, least, most)
		return otherwise
	}
	return number
}

func (s strictly) duration(at string, object map[string]any, key string, otherwise time.Duration) time.Duration {
	if _, given := object[key]; !given {
		return otherwise
	}
	text := s.text(at, object, key)
	duration, err := time.ParseDuration(text)
	if err != nil || duration <= 0 {
		s.wrong("%sattribute %s must be a duration above zero, such as \"8s\" or \"15m\"", at, key)
		return otherwise
	}
	return duration
}

// decodeFeedback reads the attribute feedback, strictly.
func decodeFeedback(value types.Dynamic, diagnostics *diag.Diagnostics) feedback {
	s := strictly{"feedback", diagnostics}
	f := feedback{}
	object, _ := s.object("", plain(value), feedbackAttributes)
	switch clusters := object["clusters"].(type) {
	case nil:
	case bool:
		f.clusters = clusters
	default:
		if asking, ok := s.object("clusters: ", clusters, askingAttributes); ok {
			f.clusters = true
			f.options.Deadline = s.duration("clusters: ", asking, "deadline", 0)
			f.options.Parallel = s.number("clusters: ", asking, "parallel", 1, 4096, 0)
		}
	}
	f.hub = s.text("", object, "hub")
	if given, is := object["hub"].(string); is && given == "" {
		s.wrong("hub: must be the name of one of the provider's clusters")
	}
	switch statuses := object["commit_statuses"].(type) {
	case nil:
	case bool:
		if statuses {
			f.statuses = &statusFeedback{commits: defaultStatusCommits}
		}
	default:
		f.statuses = s.statuses(statuses)
	}
	if reports, given := object["reports"]; given {
		f.reports = s.reports(reports)
	}
	return f
}

func (s strictly) statuses(given any) *statusFeedback {
	const at = "commit_statuses: "
	object, ok := s.object(at, given, statusesAttributes)
	if !ok {
		return nil
	}
	f := &statusFeedback{
		context:  s.text(at, object, "context"),
		commits:  s.number(at, object, "commits", 1, maxStatusCommits, defaultStatusCommits),
		settings: delivery.Settings{Forge: forge.Forge(s.text(at, object, "forge")), APIURL: s.text(at, object, "api_url")},
	}
	if _, given := object["context"]; given {
		if _, err := observe.ParseContext(f.context); err != nil {
			s.wrong("%s%s", at, err)
		}
	}
	return f
}

// contexts are those that are understood.
func (f *statusFeedback) contexts(environment string) observe.Contexts {
	if f.context == "" {
		return observe.DefaultContexts(environment)
	}
	contexts, _ := observe.ParseContext(f.context) // checked when it was decoded
	return contexts
}

func (s strictly) reports(given any) []compliance.Report {
	list, ok := given.([]any)
	if !ok {
		s.wrong("reports: must be a list of objects: {%s}", strings.Join(reportAttributes, ", "))
		return nil
	}
	reports := make([]compliance.Report, 0, len(list))
	for i, one := range list {
		at := fmt.Sprintf("reports[%d]: ", i)
		object, ok := s.object(at, one, reportAttributes)
		if !ok {
			if one == nil {
				s.wrong("%smust be an object: {%s}", at, strings.Join(reportAttributes, ", "))
			}
			continue
		}
		report := compliance.Report{
			Cluster: s.text(at, object, "cluster"), Commit: s.text(at, object, "commit"), Message: s.text(at, object, "message"),
		}
		if all, _ := one.(map[string]any); report.Cluster == "" && fleet.IsKnown(all["cluster"]) {
			s.wrong("%sattribute cluster is missing", at)
		}
		if ready, given := object["ready"]; given {
			is, ok := ready.(bool)
			if !ok {
				s.wrong("%sattribute ready must be true or false", at)
			}
			report.Ready = &is
		}
		if _, given := object["since"]; given {
			since, err := time.Parse(time.RFC3339, s.text(at, object, "since"))
			if err != nil {
				s.wrong("%sattribute since must be a time as in 2026-01-31T00:00:00Z (RFC 3339)", at)
			}
			report.Since = since.UTC().Truncate(time.Second)
		}
		reports = append(reports, report)
	}
	return reports
}

// checkReports finds reports about clusters that the fleet does not have: whoever misspells one would wait
// for it for ever.
func checkReports(reports []compliance.Report, clusters map[string]compliance.Cluster, diagnostics *diag.Diagnostics) {
	s := strictly{"feedback", diagnostics}
	names := slices.Sorted(maps.Keys(clusters))
	seen := map[string]bool{}
	for i, report := range reports {
		if _, ok := clusters[report.Cluster]; !ok && !seen[report.Cluster] {
			seen[report.Cluster] = true
			s.wrong("reports[%d]: no cluster of this fleet is called %q%s", i, report.Cluster, fleet.DidYouMean(report.Cluster, names))
		}
	}
}

// decodeWait reads the attribute wait, strictly; nil where it is not given.
func decodeWait(value types.Dynamic, diagnostics *diag.Diagnostics) *compliance.Goal {
	s := strictly{"wait", diagnostics}
	object, ok := s.object("", plain(value), waitAttributes)
	if !ok {
		return nil
	}
	return &compliance.Goal{
		ReadyPercent: s.number("", object, "ready_percent", 1, 100, 100),
		Timeout:      s.duration("", object, "timeout", 15*time.Minute),
	}
}
