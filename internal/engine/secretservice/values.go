package secretservice

import (
	"fmt"
	"strconv"
	"strings"
)

// Values returns Helm values as a template of External Secrets Operator. Names are escaped, so that none becomes an action,
// and secrets are JSON, so that no character has a meaning in YAML.
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

// literal quotes a key for YAML in a template.
func literal(key string) string {
	return strings.ReplaceAll(strconv.QuoteToASCII(key), "{{", `{{ "{{" }}`)
}
