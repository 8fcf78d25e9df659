package fleet

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Form is the syntax of a text, for readers and JSON Schemas.
type Form struct {
	Pattern string
	Longest int // in bytes; 0: bounded by Pattern

	compiled *regexp.Regexp
	wrong    string
	// isPlain accepts most valid texts much faster than the expression. It may be nil.
	isPlain func(text string) bool
}

func newForm(pattern string, longest int, isPlain func(string) bool, wrong string) *Form {
	return &Form{Pattern: pattern, Longest: longest, compiled: regexp.MustCompile(pattern), wrong: wrong, isPlain: isPlain}
}

const (
	dnsLabel  = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
	labelName = "[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
	ofALabel  = `letters, digits, "-", "_" and ".", starting and ending with a letter or digit, at most 63 characters`
)

const maxLabelName = 63

var (
	labelForm = newForm("^"+dnsLabel+"$", validation.DNS1123LabelMaxLength, isPlainName,
		`is not a DNS label: lower case letters, digits and "-", starting and ending with a letter or digit, at most 63 characters`)
	subdomainForm = newForm("^"+dnsLabel+`(\.`+dnsLabel+")*$", validation.DNS1123SubdomainMaxLength, isPlainName,
		`is not a DNS subdomain: lower case letters, digits, "-" and ".", starting and ending with a letter or digit, at most 253 characters`)
	labelKeyForm = newForm("^("+dnsLabel+`(\.`+dnsLabel+")*/)?"+labelName+"$", validation.DNS1123SubdomainMaxLength+len("/")+maxLabelName,
		IsPlainLabel, "is not the key of a label: "+ofALabel+`, after a DNS subdomain and "/" or without one`)
	labelValueForm        = newForm("^("+labelName+")?$", 0, IsPlainLabel, "is not the value of a label: "+ofALabel)
	kubernetesVersionForm = newForm(`^v?[0-9]{1,3}\.[0-9]{1,3}(\.[0-9]{1,3}([+-][0-9A-Za-z][0-9A-Za-z.+-]{0,62})?)?$`, 0, nil,
		`is not a version of Kubernetes: write "1.34" or "v1.34.2"`)
	// https://kubernetes.io/docs/reference/using-api/api-concepts
	kubernetesKindForm = newForm(`^(?:[a-z0-9][a-z0-9.-]*/){0,2}[A-Z][A-Za-z0-9]{0,62}$`, 0, nil,
		`is not the kind of a Kubernetes object, such as "Deployment" or "apps/Deployment"`)
	apiVersionForm = newForm(`^([a-z0-9]([a-z0-9.-]*[a-z0-9])?/)?v[0-9]+((alpha|beta)[0-9]+)?(/[A-Z][A-Za-z0-9]*)?$`, 0, nil,
		`is not an API version: write "<group>/<version>" or "<group>/<version>/<kind>", as in "monitoring.coreos.com/v1/ServiceMonitor"`)
)

// check returns the problem of a text without the text, or "".
func (f *Form) check(text string) string {
	if f.isPlain != nil && f.isPlain(text) {
		return ""
	}
	prefix, _, _ := strings.Cut(text, "/")
	isTooLong := f.Longest > 0 && len(text) > f.Longest || f == labelKeyForm && len(prefix) > validation.DNS1123SubdomainMaxLength
	if isTooLong || !f.compiled.MatchString(text) {
		return f.wrong
	}
	return ""
}

// IsAPIVersion reports whether api_versions of a cluster type may have a text.
func IsAPIVersion(text string) bool { return apiVersionForm.check(text) == "" }

// CheckLabelName returns the problem of a DNS label, or "".
func CheckLabelName(name string) string { return labelForm.check(name) }

// CheckSubdomainName returns the problem of a DNS subdomain, or "".
func CheckSubdomainName(name string) string { return subdomainForm.check(name) }

// CheckLabelKey returns the problem of a label's key, which it quotes, or "".
func CheckLabelKey(key string) string { return quoted(key, labelKeyForm.check(key)) }

// CheckLabelValue returns the problem of a label's value, which it quotes, or "".
func CheckLabelValue(value string) string { return quoted(value, labelValueForm.check(value)) }

func quoted(text, problem string) string {
	if problem == "" {
		return ""
	}
	return fmt.Sprintf("%q %s", text, problem)
}

// IsPlainLabel reports a certainly valid value, which is also a valid key.
func IsPlainLabel(text string) bool {
	if text == "" || len(text) > maxLabelName {
		return false
	}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9':
		case c == '-' || c == '_' || c == '.':
			if i == 0 || i == len(text)-1 {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// isPlainName reports a certainly valid DNS label.
func isPlainName(text string) bool {
	return IsPlainLabel(text) && !strings.ContainsAny(text, "._ABCDEFGHIJKLMNOPQRSTUVWXYZ")
}
