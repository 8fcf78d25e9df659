package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
)

const (
	valueAdvice = "plain values are committed as they are: give a reference to it in secrets of a config container, " +
		"or an encrypted file; if it is none, "
	committedAdvice = "what is rendered with it is committed as it is: refer to a Secret instead; if it is none, "
	toAllowPlain    = "add allow_plain = [%q]"
)

// checkCommitted is checkPlain for an attribute; the last of attributes starts the names.
func (d *decoder) checkCommitted(o *ObjectReader, allowed []string, attributes ...string) {
	var value any = o.fields
	path := o.path
	for _, attribute := range attributes {
		object, _ := value.(map[string]any)
		value, path = object[attribute], path.Attribute(attribute)
	}
	d.checkPlain(path, attributes[len(attributes)-1], value, allowed, committedAdvice+toAllowPlain)
}

// checkPlain reports credentials, except names such as database.password in allowed. Findings never contain a value.
func (d *decoder) checkPlain(path *Path, prefix string, value any, allowed []string, advice string) {
	for _, found := range credential.Find(value) {
		name := strings.Trim(prefix+"."+found.Path, ".")
		if slices.Contains(allowed, name) {
			continue
		}
		where := ""
		if found.Line > 0 {
			where = fmt.Sprintf(" in line %d", found.Line)
		}
		at := path
		if found.Path != "" {
			at = &Path{parent: path, step: "." + strings.TrimPrefix(found.Path, ".")}
		}
		d.Report(at, "looks like a credential%s (rule %s), and "+advice, where, found.Rule, name)
	}
}

// CheckOpenText returns a problem if a text looks like a credential, or "".
func CheckOpenText(text string) string {
	found := credential.Find(text)
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf(
		"has what looks like a credential (rule %s), and everybody can read it who can read the repository or the plan: take it out",
		found[0].Rule,
	)
}

// ReadOpenText reads a text that must not contain a credential.
func ReadOpenText(o *ObjectReader, name string) string {
	text := o.Text(name)
	if problem := CheckOpenText(text); problem != "" {
		o.Report(name, "%s", problem)
	}
	return text
}

func readAllowPlain(o *ObjectReader, attribute string) (names []string, known bool) {
	known = readAside(o, func() { names = readSortedTexts(o, attribute) })
	return names, known
}
