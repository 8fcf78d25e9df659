package report

import (
	"cmp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/comparison"
)

// Comparison is a comparison on a page.
type Comparison struct {
	Name string
	*comparison.Result
}

// LeftName returns the name of the left side.
func (c Comparison) LeftName() string { return sideName(&c.Left, &c.Right) }

// RightName returns the name of the right side.
func (c Comparison) RightName() string { return sideName(&c.Right, &c.Left) }

// sideName adds branch, path or commit if the other side is the same owner.
func sideName(of, other *comparison.Seen) string {
	switch {
	case of.Name != other.Name:
		return of.Name
	case of.Branch != other.Branch:
		return of.Name + " on " + of.Branch
	case of.Path != other.Path:
		return of.Name + " at " + cmp.Or(of.Path, "/")
	}
	return of.Name + " at " + cmp.Or(short(of.Commit), "no commit")
}

func (c Comparison) in(state comparison.State) []comparison.Target {
	return slices.DeleteFunc(slices.Clone(c.Targets), func(t comparison.Target) bool { return t.State != state })
}

// Differences counts the targets that differ.
func (c Comparison) Differences() int { return c.OnlyLeft + c.OnlyRight + c.Different }

// versionsOf returns "v2 on 3 hosts, v1 on 1 host", or "v2". long adds everything in the manifests.
func versionsOf(versions []comparison.Version, long bool) string {
	texts := make([]string, len(versions))
	for i := range versions {
		v := &versions[i]
		texts[i] = manifestsText(v.Manifests, long)
		if len(versions) > 1 {
			texts[i] += " on " + counted(v.Count(), "host")
		}
	}
	return strings.Join(texts, ", ")
}

func manifestsText(m *folder.Manifests, long bool) string {
	switch {
	case m == nil:
		return "not recorded"
	case !long:
		return cmp.Or(m.Revision(), "no version")
	}
	return strings.Join(strings.Fields(strings.Join([]string{m.Storage, m.Repo, m.Path, m.Chart, m.Revision()}, " ")), " ")
}

// versionTexts is short if that shows the difference.
func versionTexts(t *comparison.Target) (left, right string) {
	left, right = versionsOf(t.Left.Versions, false), versionsOf(t.Right.Versions, false)
	if t.Has(comparison.ByVersion) && left == right {
		left, right = versionsOf(t.Left.Versions, true), versionsOf(t.Right.Versions, true)
	}
	return left, right
}

func targetName(t *comparison.Target) string {
	if t.RightName != "" {
		return t.Name + " / " + t.RightName
	}
	return t.Name
}

func namesText(names []string, more int) string {
	const most = 8
	more += max(0, len(names)-most)
	text := strings.Join(first(names, most), ", ")
	if more > 0 {
		text += " and " + number(more) + " more"
	}
	return text
}

// ComparisonMarkdown returns Markdown limited like [Markdown].
func ComparisonMarkdown(result *comparison.Result, limit int) string {
	c, m := Comparison{Result: result}, &markdown{}
	left, right := code(c.LeftName()), code(c.RightName())
	m.add("## Flotilla: "+left+" and "+right, "")
	if c.Differences() == 0 {
		m.add("Nothing differs: "+counted(c.Same, "deployment target")+".", "")
	} else {
		m.add("**"+counted(c.Different, "deployment target")+" "+isAre(c.Different)+" different**, "+number(c.OnlyLeft)+" only in "+left+", "+
			number(c.OnlyRight)+" only in "+right+", "+number(c.Same)+" the same.", "")
	}
	m.heads([]string{"", left, right})
	m.row([]string{"branch", code(c.Left.Branch), code(c.Right.Branch)})
	m.row([]string{"commit", code(short(clean(c.Left.Commit))), code(short(clean(c.Right.Commit)))})
	m.row([]string{"hosts", number(c.Left.Hosts), number(c.Right.Hosts)})
	m.row([]string{"assignments", number(c.Left.Assignments), number(c.Right.Assignments)})
	for _, note := range c.Notes {
		m.add("", codeOf(note, shownRunes))
	}
	m.different(c, left, right)
	m.keys(c, left, right)
	m.only(c.in(comparison.OnlyLeft), left, func(t *comparison.Target) *comparison.Part { return &t.Left })
	m.only(c.in(comparison.OnlyRight), right, func(t *comparison.Target) *comparison.Part { return &t.Right })
	m.either("Hosts", comparison.ByHosts, c, left, right, func(p *comparison.Part) string { return namesText(p.OnlyHosts, p.MoreHosts) })
	m.either("Target policies", comparison.ByPolicies, c, left, right, func(p *comparison.Part) string { return namesText(p.OnlyPolicies, 0) })
	return cut(m.lines, limit)
}

func (m *markdown) different(c Comparison, left, right string) {
	all := c.in(comparison.Different)
	m.table(
		"Different ("+number(c.Different)+")",
		c.Different,
		[]string{"Deployment target", "By", left, right},
		rowsOf(all, func(t *comparison.Target) []string {
			one, other := versionTexts(t)
			return []string{code(targetName(t)), aspects(t), code(one), code(other)}
		}),
	)
}

func aspects(t *comparison.Target) string {
	var words []string
	for _, aspect := range comparison.Aspects {
		if t.Has(aspect) {
			words = append(words, string(aspect))
		}
	}
	return strings.Join(words, ", ")
}

func (m *markdown) keys(c Comparison, left, right string) {
	var rows [][]string
	all, values := 0, false
	for i := range c.Targets {
		t := &c.Targets[i]
		all += len(t.Keys) + t.MoreKeys
		for j := range t.Keys {
			k := &t.Keys[j]
			values = values || len(k.Left)+len(k.Right) > 0
			if len(rows) < markdownRows {
				rows = append(rows, []string{
					code(targetName(t)), code(k.Key),
					valueCell(k.Left, k.State == comparison.OnlyRight), valueCell(k.Right, k.State == comparison.OnlyLeft),
				})
			}
		}
	}
	m.table("Values ("+number(all)+")", all, []string{"Deployment target", "Key", left, right}, rows)
}

func valueCell(values []string, absent bool) string {
	texts := make([]string, len(values))
	for i, text := range values {
		texts[i] = cmp.Or(code(text), "empty")
	}
	return valuesText(texts, absent)
}

func (m *markdown) only(all []comparison.Target, side string, part func(*comparison.Target) *comparison.Part) {
	m.table(
		"Only in "+side+" ("+number(len(all))+")",
		len(all),
		[]string{"Deployment target", "Workload", "Version", "Hosts:"},
		rowsOf(all, func(t *comparison.Target) []string {
			of, hosts := part(t), 0
			for i := range of.Versions {
				hosts += of.Versions[i].Count()
			}
			return []string{code(t.Name), code(t.Workload), code(versionsOf(of.Versions, false)), number(hosts)}
		}),
	)
}

// either lists names on only one side, of targets that differ by an aspect.
func (m *markdown) either(title string, by comparison.Aspect, c Comparison, left, right string, names func(*comparison.Part) string) {
	var rows [][]string
	all := 0
	for i := range c.Targets {
		t := &c.Targets[i]
		one, other := code(names(&t.Left)), code(names(&t.Right))
		if !t.Has(by) || one == "" && other == "" { // such as the same policies on other hosts
			continue
		}
		if all++; len(rows) < markdownRows {
			rows = append(rows, []string{code(targetName(t)), cmp.Or(one, "–"), cmp.Or(other, "–")})
		}
	}
	m.table(title+" ("+number(all)+")", all, []string{"Deployment target", "only in " + left, "only in " + right}, rows)
}

func (m *markdown) comparisons() {
	all := m.page.Comparisons
	m.table(
		"Comparisons",
		len(all),
		[]string{"Comparison", "Left", "Right", "Different:", "Only left:", "Only right:", "Same:"},
		rowsOf(all, func(c *Comparison) []string {
			return []string{
				code(c.Name), code(c.LeftName()), code(c.RightName()), number(c.Different), number(c.OnlyLeft), number(c.OnlyRight), number(c.Same),
			}
		}),
	)
}

// ComparedRow is a target in the table of a comparison.
type ComparedRow struct {
	Name, By, Left, Right string
	// Also has sentences about hosts and policies.
	Also []string
	Keys []ComparedKey
	More int
}

// ComparedKey is a key with different values.
type ComparedKey struct{ Key, Left, Right string }

// Rows returns the targets that differ.
func (c Comparison) Rows() []ComparedRow {
	rows := make([]ComparedRow, len(c.Targets))
	left, right := c.LeftName(), c.RightName()
	for i := range c.Targets {
		t := &c.Targets[i]
		row := ComparedRow{Name: targetName(t), By: aspects(t), More: t.MoreKeys}
		row.Left, row.Right = versionTexts(t)
		switch t.State {
		case comparison.OnlyLeft:
			row.By = "only in " + left
		case comparison.OnlyRight:
			row.By = "only in " + right
		}
		for _, side := range []struct {
			name string
			of   *comparison.Part
		}{{left, &t.Left}, {right, &t.Right}} {
			if names := namesText(side.of.OnlyHosts, side.of.MoreHosts); names != "" {
				row.Also = append(row.Also, "hosts only in "+side.name+": "+names)
			}
			if names := namesText(side.of.OnlyPolicies, 0); names != "" {
				row.Also = append(row.Also, "target policies only in "+side.name+": "+names)
			}
		}
		if t.KeysUnknown {
			row.Also = append(row.Also, "which values differ is not known")
		}
		for j := range t.Keys {
			k := &t.Keys[j]
			row.Keys = append(row.Keys, ComparedKey{
				k.Key, valuesText(k.Left, k.State == comparison.OnlyRight), valuesText(k.Right, k.State == comparison.OnlyLeft),
			})
		}
		rows[i] = row
	}
	return rows
}

// KeyCount returns the number of different keys.
func (r ComparedRow) KeyCount() int { return len(r.Keys) + r.More }

func valuesText(values []string, absent bool) string {
	if absent {
		return "–"
	}
	return cmp.Or(namesText(values, 0), "has it")
}

// MaxComparisons limits the comparisons of a page.
const MaxComparisons = 8

// comparisonBytes estimates their size on the page: at most three times their text.
func comparisonBytes(p *Page) int {
	size := 0
	for _, c := range p.Comparisons {
		text, _ := c.Marshal(true)
		size += 3 * len(text)
	}
	return size
}
