package provider

import (
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/pipeline"
)

// fleetPath is the path of the fleet in every resource and data source.
var fleetPath = path.Root("fleet")

// maxDiagnostics bounds how many of one kind are listed.
const maxDiagnostics = 50

func addErrors(diagnostics *diag.Diagnostics, found []pipeline.Finding) {
	for _, finding := range found {
		diagnostics.AddAttributeError(fleetPath, finding.Summary, sentence(finding.Message))
	}
}

func addWarnings(diagnostics *diag.Diagnostics, found []pipeline.Finding) {
	for _, finding := range found {
		diagnostics.AddAttributeWarning(fleetPath, finding.Summary, sentence(finding.Message))
	}
}

func addLimited[T any](diagnostics *diag.Diagnostics, findings []T, add func(T)) {
	for i, finding := range findings {
		if i == maxDiagnostics {
			diagnostics.AddAttributeWarning(fleetPath, "More findings",
				fmt.Sprintf("%d further findings of the same kind are not shown.", len(findings)-maxDiagnostics))
			return
		}
		add(finding)
	}
}
