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
	return cut(execute("comparison", Comparison{Result: result}), limit)
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

// ComparedValue is a key of a target.
type ComparedValue struct {
	Target string
	*comparison.Key
}

// Values returns the first different keys.
func (c Comparison) Values() []ComparedValue {
	var values []ComparedValue
	for i := range c.Targets {
		t := &c.Targets[i]
		for j := range t.Keys {
			values = append(values, ComparedValue{targetName(t), &t.Keys[j]})
		}
	}
	return values
}

// ValueCount counts different keys.
func (c Comparison) ValueCount() int {
	count := 0
	for i := range c.Targets {
		count += len(c.Targets[i].Keys) + c.Targets[i].MoreKeys
	}
	return count
}

func valueCell(values []string, absent bool) string {
	texts := make([]string, len(values))
	for i, text := range values {
		texts[i] = cmp.Or(Code(text), "empty")
	}
	return valuesText(texts, absent)
}

// OneSidedNames is a table of names.
type OneSidedNames struct {
	Title string
	Rows  []OneSidedRow
}

// OneSidedRow is a target.
type OneSidedRow struct{ Name, Left, Right string }

// OneSided returns hosts and policies on only one side.
func (c Comparison) OneSided() []OneSidedNames {
	var found []OneSidedNames
	for _, of := range []struct {
		title string
		by    comparison.Aspect
		names func(*comparison.Part) string
	}{
		{"Hosts", comparison.ByHosts, hostNames}, {"Target policies", comparison.ByPolicies, policyNames},
	} {
		var rows []OneSidedRow
		for i := range c.Targets {
			t := &c.Targets[i]
			left, right := Code(of.names(&t.Left)), Code(of.names(&t.Right))
			if t.Has(of.by) && left+right != "" { // else such as the same policies on other hosts
				rows = append(rows, OneSidedRow{targetName(t), cmp.Or(left, "–"), cmp.Or(right, "–")})
			}
		}
		if len(rows) > 0 {
			found = append(found, OneSidedNames{of.title, rows})
		}
	}
	return found
}

func hostNames(p *comparison.Part) string { return namesText(p.OnlyHosts, p.MoreHosts) }

func policyNames(p *comparison.Part) string { return namesText(p.OnlyPolicies, 0) }

// ComparedRow is a target in the table of a comparison.
type ComparedRow struct {
	*comparison.Target
	Name, By, Left, Right string
	// Also has sentences about hosts and policies.
	Also []string
}

// Rows returns the targets that differ.
func (c Comparison) Rows() []ComparedRow {
	rows := make([]ComparedRow, len(c.Targets))
	left, right := c.LeftName(), c.RightName()
	for i := range c.Targets {
		t := &c.Targets[i]
		row := ComparedRow{Target: t, Name: targetName(t), By: aspects(t)}
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
			if names := hostNames(side.of); names != "" {
				row.Also = append(row.Also, "hosts only in "+side.name+": "+names)
			}
			if names := policyNames(side.of); names != "" {
				row.Also = append(row.Also, "target policies only in "+side.name+": "+names)
			}
		}
		if t.KeysUnknown {
			row.Also = append(row.Also, "which values differ is not known")
		}
		rows[i] = row
	}
	return rows
}

// RowsOf returns the rows of targets in a state.
func (c Comparison) RowsOf(state comparison.State) []ComparedRow {
	return slices.DeleteFunc(c.Rows(), func(row ComparedRow) bool { return row.State != state })
}

// KeyCount returns the number of different keys.
func (r ComparedRow) KeyCount() int { return len(r.Keys) + r.MoreKeys }

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
