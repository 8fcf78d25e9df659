package fleet

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

func readName(o *ObjectReader, check func(string) string) string {
	return checkText(o, "name", readRequired(o, "name"), check)
}

const maxLabelName = 63

// CheckLabelName returns the problem of a DNS label, or "".
func CheckLabelName(name string) string {
	if IsPlainLabel(name) && isLower(name) && !strings.Contains(name, ".") {
		return ""
	}
	return labelForm.check(name)
}

// CheckSubdomainName returns the problem of a DNS subdomain, or "".
func CheckSubdomainName(name string) string {
	if IsPlainLabel(name) && isLower(name) && !strings.Contains(name, ".") {
		return ""
	}
	return subdomainForm.check(name)
}

func readLabels(o *ObjectReader, attribute string) Labels {
	labels := Labels(readTextMap(o, attribute))
	if arePlain(labels) {
		return labels
	}
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if o.reader.full() {
			break // one message may take kilobytes
		}
		path := o.path.Attribute(attribute).Key(key)
		if problem := CheckLabelKey(key); problem != "" {
			o.reader.Report(path, "%s", problem)
		}
		if labels[key] != unknownText {
			if problem := CheckLabelValue(labels[key]); problem != "" {
				o.reader.Report(path, "%s", problem)
			}
		}
	}
	return labels
}

func isLower(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; 'A' <= c && c <= 'Z' || c == '_' {
			return false
		}
	}
	return true
}

// arePlain avoids Kubernetes' regular expressions for most labels.
func arePlain(labels map[string]string) bool {
	for key, value := range labels {
		if !IsPlainLabel(key) || value != "" && !IsPlainLabel(value) {
			return false
		}
	}
	return true
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

// CheckLabelKey returns the problem of a label's key, or "".
func CheckLabelKey(key string) string {
	if IsPlainLabel(key) {
		return ""
	}
	prefix, _, _ := strings.Cut(key, "/")
	problem := labelKeyForm.check(key)
	if problem == "" && len(prefix) > validation.DNS1123SubdomainMaxLength {
		problem = labelKeyForm.wrong
	}
	return quoted(key, problem)
}

// CheckLabelValue returns the problem of a label's value, or "".
func CheckLabelValue(value string) string {
	if value == "" || IsPlainLabel(value) {
		return ""
	}
	return quoted(value, labelValueForm.check(value))
}

func quoted(text, problem string) string {
	if problem == "" {
		return ""
	}
	return fmt.Sprintf("%q %s", text, problem)
}
