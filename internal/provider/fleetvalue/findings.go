package fleetvalue

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pipeline"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// Path is the attribute fleet.
var Path = path.Root("fleet")

// MaxDiagnostics bounds diagnostics of one kind.
const MaxDiagnostics = 50

// AddErrors adds findings as errors of the attribute fleet.
func AddErrors(diagnostics *diag.Diagnostics, found []pipeline.Diagnostic) {
	for _, finding := range found {
		once.Error(diagnostics, Path, finding.Summary, tfvalue.Sentence(finding.Message))
	}
}

// AddWarnings adds findings as warnings of it.
func AddWarnings(diagnostics *diag.Diagnostics, found []pipeline.Diagnostic) {
	for _, finding := range found {
		once.Warning(diagnostics, Path, finding.Summary, tfvalue.Sentence(finding.Message))
	}
}

// AddLimited adds [MaxDiagnostics] findings, and counts the others.
func AddLimited[T any](diagnostics *diag.Diagnostics, findings []T, add func(T)) {
	for i, finding := range findings {
		if i == MaxDiagnostics {
			diagnostics.AddAttributeWarning(Path, "More findings",
				fmt.Sprintf("%d further findings of the same kind are not shown.", len(findings)-MaxDiagnostics))
			return
		}
		add(finding)
	}
}
