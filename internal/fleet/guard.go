package fleet

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/credential"
)

// checkPlain refuses what looks like a credential in data at a path, but for the values that are allowed to: the names
// that a finding gives, such as database.password; toAllow says how to do that. What is not known yet is passed over. A finding never has a value.
func (d *decoder) checkPlain(path *Path, data any, allowed []string, toAllow string) {
	for _, found := range credential.Find(data) {
		if slices.Contains(allowed, found.Path) {
			continue
		}
		where := ""
		if found.Line > 0 {
			where = fmt.Sprintf(" in line %d", found.Line)
		}
		// The path of a finding is that of the value below data, also where a key has a dot in it.
		at := &Path{parent: path, step: "." + strings.TrimPrefix(found.Path, ".")}
		d.Report(at, "looks like a credential%s (rule %s), and plain values are committed as they are: give a reference to it in secrets of a config container, "+
			"or an encrypted file; if it is none, "+toAllow, where, found.Rule, found.Path)
	}
}

// allowPlain reads the names of values that may look like a credential. known is false while any of them is unknown, which
// makes nothing else unknown.
func (o *Object) allowPlain(attribute string) (names []string, known bool) {
	known = o.aside(func() { names = o.sortedTexts(attribute) })
	return names, known
}
