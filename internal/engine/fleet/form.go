package fleet

import (
	"regexp"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Form is the syntax of a text, for readers and JSON Schemas.
type Form struct {
	Pattern string
	Longest int // in bytes; 0: bounded by Pattern

	compiled *regexp.Regexp
	wrong    string
}

func newForm(pattern string, longest int, wrong string) *Form {
	return &Form{Pattern: pattern, Longest: longest, compiled: regexp.MustCompile(pattern), wrong: wrong}
}

const (
	dnsLabel  = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
	labelName = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
	ofALabel  = `letters, digits, "-", "_" and ".", starting and ending with a letter or digit, at most 63 characters`
)

var (
	labelForm = newForm("^"+dnsLabel+"$", validation.DNS1123LabelMaxLength,
		`is not a DNS label: lower case letters, digits and "-", starting and ending with a letter or digit, at most 63 characters`)
	subdomainForm = newForm("^"+dnsLabel+`(\.`+dnsLabel+")*$", validation.DNS1123SubdomainMaxLength,
		`is not a DNS subdomain: lower case letters, digits, "-" and ".", starting and ending with a letter or digit, at most 253 characters`)
	labelKeyForm = newForm("^("+dnsLabel+`(\.`+dnsLabel+")*/)?"+labelName+"$", validation.DNS1123SubdomainMaxLength+len("/")+maxLabelName,
		"is not the key of a label: "+ofALabel+`, after a DNS subdomain and "/" or without one`)
	labelValueForm        = newForm("^("+labelName+")?$", 0, "is not the value of a label: "+ofALabel)
	kubernetesVersionForm = newForm(`^v?[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3}([+-][0-9A-Za-z][0-9A-Za-z.+-]{0,62})?)?$`, 0,
		`is not a version of Kubernetes: write "1.34" or "v1.34.2"`)
	apiVersionForm = newForm(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?(/[A-Z][A-Za-z0-9]*)?$`, 0,
		`is not an API version: write "<group>/<version>" or "<group>/<version>/<kind>", as in "monitoring.coreos.com/v1/ServiceMonitor"`)
)

func (f *Form) check(text string) string {
	if f.Longest > 0 && len(text) > f.Longest || !f.compiled.MatchString(text) {
		return f.wrong
	}
	return ""
}

// IsAPIVersion reports whether api_versions of a cluster type may have a text.
func IsAPIVersion(text string) bool { return apiVersionForm.check(text) == "" }

func (f *Form) isOfLabel() bool { return f == labelKeyForm || f == labelValueForm }

func (f *Form) checkLabel(text string) string {
	if f == labelKeyForm {
		return CheckLabelKey(text)
	}
	return CheckLabelValue(text)
}
