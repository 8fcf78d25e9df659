package secretservice

import (
	"fmt"
	"strconv"
	"strings"
)

// Values is the text of Helm values with secrets in them, as a template of External Secrets Operator: keys are those of the
// Secret, and below are keys above them. What people have written is text in it, and never an action of the template. A secret
// is written as JSON, so that none of its characters means anything in YAML.
func Values(below, keys []string) string {
	var text strings.Builder
	indent := ""
	for _, key := range below {
		fmt.Fprintf(&text, "%s%s:\n", indent, literal(key))
		indent += "  "
	}
	for _, key := range keys {
		fmt.Fprintf(&text, "%s%s: {{ index . %s | toJson }}\n", indent, literal(key), strconv.Quote(key))
	}
	return text.String()
}

// literal is a key in YAML that stands for itself in a template of Go.
func literal(key string) string {
	return strings.ReplaceAll(strconv.QuoteToASCII(key), "{{", `{{ "{{" }}`)
}
