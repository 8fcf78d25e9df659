package providertest

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Diagnostic is a diagnostic of the provider or of core about a resource.
type Diagnostic struct {
	Error   bool // else a warning
	Core    bool // a mistake in the configuration, or a bug of the provider
	Address string
	Summary string
	Detail  string
	At      string // path of the attribute: AttributeName("fleet").AttributeName("model")
	Path    *tftypes.AttributePath
}

func (d Diagnostic) String() string {
	severity := "Warning"
	if d.Error {
		severity = "Error"
	}
	return fmt.Sprintf("%s: %s (%s %s): %s", severity, d.Summary, d.Address, d.At, d.Detail)
}

// Diagnostics belong to one operation.
type Diagnostics []Diagnostic

// Err returns nil for warnings only.
func (d Diagnostics) Err() error {
	var texts []error
	for _, diagnostic := range d {
		if diagnostic.Error {
			texts = append(texts, errors.New(diagnostic.String()))
		}
	}
	return errors.Join(texts...)
}

// Bugs returns the errors of core that are bugs of the provider.
func (d Diagnostics) Bugs() error {
	var bugs Diagnostics
	for _, diagnostic := range d {
		if diagnostic.Core && strings.HasPrefix(diagnostic.Summary, "Provider ") {
			bugs = append(bugs, diagnostic)
		}
	}
	return bugs.Err()
}

// Has reports whether a diagnostic has the summary.
func (d Diagnostics) Has(summary string) bool {
	for _, diagnostic := range d {
		if diagnostic.Summary == summary {
			return true
		}
	}
	return false
}

func (d Diagnostics) String() string {
	lines := make([]string, len(d))
	for i, diagnostic := range d {
		lines[i] = diagnostic.String()
	}
	return strings.Join(lines, "\n")
}

func fromProtocol(address string, from []*tfprotov6.Diagnostic) Diagnostics {
	var all Diagnostics
	for _, diagnostic := range from {
		at := ""
		if diagnostic.Attribute != nil {
			at = diagnostic.Attribute.String()
		}
		all = append(all, Diagnostic{
			Error: diagnostic.Severity == tfprotov6.DiagnosticSeverityError, Address: address,
			Summary: diagnostic.Summary, Detail: diagnostic.Detail, At: at, Path: diagnostic.Attribute,
		})
	}
	return all
}

func core(address, summary, detail string) Diagnostics {
	return Diagnostics{{Error: true, Core: true, Address: address, Summary: summary, Detail: detail}}
}

// protocolError reports an answer that the protocol forbids.
func protocolError(address string, err error) Diagnostics {
	return core(address, "Provider failed", err.Error())
}

func bugs(address, summary string, problems []error) Diagnostics {
	var all Diagnostics
	for _, problem := range problems {
		all = append(all, core(address, summary, problem.Error())...)
	}
	return all
}

func (d Diagnostics) at(address string) Diagnostics {
	for i := range d {
		d[i].Address = address
	}
	return d
}
