// Package once merges equal diagnostics of several data sources and resources, which Terraform would repeat.
package once

import (
	"fmt"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// common is a diagnostic that other objects may have, too.
type common struct{ diag.DiagnosticWithPath }

func (c common) Equal(other diag.Diagnostic) bool {
	same, ok := other.(common)
	return ok && c.DiagnosticWithPath.Equal(same.DiagnosticWithPath)
}

// Error adds an error that other objects may have with an equal text.
func Error(diagnostics *diag.Diagnostics, at path.Path, summary, detail string) {
	diagnostics.Append(common{diag.NewAttributeErrorDiagnostic(at, summary, detail)})
}

// Warning adds a warning that other objects may have with an equal text.
func Warning(diagnostics *diag.Diagnostics, at path.Path, summary, detail string) {
	diagnostics.Append(common{diag.NewAttributeWarningDiagnostic(at, summary, detail)})
}

// Memory has the diagnostics of a run, a process of the provider. The zero value is ready. It is safe for concurrent
// use.
type Memory struct {
	said sync.Map
}

type text struct {
	severity        diag.Severity
	summary, detail string
}

func (m *Memory) isFirst(one common) bool {
	_, before := m.said.LoadOrStore(text{one.Severity(), one.Summary(), one.Detail()}, nil)
	return !before
}

// Reduce removes repeated warnings, replaces repeated errors by one, and joins warnings with one title: Terraform shows
// only the first of those.
func (m *Memory) Reduce(diagnostics *diag.Diagnostics) {
	var kept diag.Diagnostics
	var repeated []common
	for _, one := range *diagnostics {
		switch of, isCommon := one.(common); {
		case !isCommon || m.isFirst(of):
			kept = append(kept, one)
		case of.Severity() == diag.SeverityError:
			repeated = append(repeated, of)
		}
	}
	if len(repeated) > 0 {
		kept = append(kept, elsewhere(repeated))
	}
	*diagnostics = joined(kept)
}

func elsewhere(repeated []common) diag.Diagnostic {
	var bySummary wording.Groups[string, common]
	for _, one := range repeated {
		bySummary.Add(one.Summary(), one)
	}
	var summaries []string
	for summary, all := range bySummary.All() {
		summaries = append(summaries, fmt.Sprintf("%s %q", wording.Count(len(all), "error", "errors"), summary))
	}
	at := repeated[0].Path()
	return diag.NewAttributeErrorDiagnostic(at, "Same error as elsewhere", fmt.Sprintf(
		"Another data source or resource of this run reports the full error at the same %s: %s. One correction removes all of these errors.",
		at,
		strings.Join(summaries, ", "),
	))
}

// joined merges warnings with the same title about the same attribute.
func joined(diagnostics diag.Diagnostics) diag.Diagnostics {
	type title struct{ summary, at string }
	var kept diag.Diagnostics
	var warnings wording.Groups[title, diag.Diagnostic]
	for _, one := range diagnostics {
		if one.Severity() != diag.SeverityWarning {
			kept = append(kept, one)
			continue
		}
		of := title{summary: one.Summary()}
		if with, ok := one.(diag.DiagnosticWithPath); ok {
			of.at = with.Path().String()
		}
		warnings.Add(of, one)
	}
	for of, all := range warnings.All() {
		whole := all[0]
		if len(all) > 1 {
			details := make([]string, len(all))
			for i := range all {
				details[i] = all[i].Detail()
			}
			whole = diag.NewWarningDiagnostic(of.summary, wording.Lines(details, wording.Named))
			if with, ok := all[0].(diag.DiagnosticWithPath); ok {
				whole = diag.WithPath(with.Path(), whole)
			}
		}
		kept = append(kept, whole)
	}
	return kept
}
