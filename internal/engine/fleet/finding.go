package fleet

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Finding is a mistake in the input.
type Finding struct {
	Path    string // workloads["hello"].labels["a b"]; empty: the whole input
	Message string // without the path
}

func (f Finding) String() string {
	if f.Path == "" {
		return f.Message
	}
	return f.Path + ": " + f.Message
}

// Findings is an error with one line per group: see [Findings.Group].
type Findings []Finding

func (f Findings) Error() string {
	var lines []string
	for _, finding := range f.Group() {
		lines = append(lines, finding.String())
	}
	return strings.Join(lines, "\n")
}

var (
	keysInPaths = regexp.MustCompile(`\[("(\\.|[^"\\])*"|\d+)\]`)
	quotedTexts = regexp.MustCompile(`"(\\.|[^"\\])*"`)
)

// MaxAlike bounds findings that differ only in quoted text: one expression can cause thousands.
const MaxAlike = 5

// WithoutQuotes returns a message without its quoted texts.
func WithoutQuotes(message string) string { return quotedTexts.ReplaceAllString(message, `""`) }

// Report adds a finding.
func (f *Findings) Report(path *Path, format string, arguments ...any) {
	*f = append(*f, Finding{Path: path.String(), Message: fmt.Sprintf(format, arguments...)})
}

// Group merges findings with one message about one attribute of several objects, with the first paths:
// `clusters["a"].labels, clusters["b"].labels and 3 more`. Beyond [MaxAlike] messages that differ only in quoted text,
// one finding has all other paths.
func (f Findings) Group() Findings {
	paths := make(map[Finding][]string, len(f))
	of := func(finding Finding) Finding {
		return Finding{keysInPaths.ReplaceAllString(finding.Path, "[]"), finding.Message}
	}
	kindOf := func(same Finding) Finding { return Finding{same.Path, WithoutQuotes(same.Message)} }
	var distinct Findings
	kinds := map[Finding]int{}
	seen := make(map[Finding]bool, len(f))
	for _, finding := range f {
		if seen[finding] {
			continue
		}
		seen[finding] = true
		same := of(finding)
		if len(paths[same]) == 0 {
			distinct = append(distinct, finding)
			kinds[kindOf(same)]++
		}
		paths[same] = append(paths[same], finding.Path)
	}
	var together Findings
	listed, others := map[Finding]int{}, map[Finding][]string{}
	for _, finding := range distinct {
		same := of(finding)
		kind := kindOf(same)
		if listed[kind]++; listed[kind] <= MaxAlike || kinds[kind] == MaxAlike+1 {
			together = append(together, Finding{wording.List(paths[same], wording.Named), finding.Message})
			continue
		}
		others[kind] = append(others[kind], paths[same]...)
		if listed[kind] == kinds[kind] {
			together = append(together, Finding{wording.List(others[kind], wording.Named), "have mistakes of the same kind"})
		}
	}
	return together
}

// Path locates a value in the input. nil is the whole input.
type Path struct {
	parent *Path
	step   string
}

// PathOf returns workloads["hello"].
func PathOf(collection, name string) *Path { return (*Path)(nil).Attribute(collection).Key(name) }

// TargetPath returns the path of a deployment target.
func TargetPath(workload, target string) *Path {
	return PathOf("workloads", workload).Attribute("deployment_targets").Key(target)
}

// Attribute returns p.name.
func (p *Path) Attribute(name string) *Path {
	return &Path{parent: p, step: "." + name}
}

// Key returns p["key"].
func (p *Path) Key(key string) *Path {
	return &Path{parent: p, step: "[" + strconv.Quote(key) + "]"}
}

// Index returns p[0].
func (p *Path) Index(index int) *Path {
	return &Path{parent: p, step: "[" + strconv.Itoa(index) + "]"}
}

// elementPaths uses names that are known and unique, else indices.
func elementPaths(p *Path, list []any) []*Path {
	count := make(map[string]int, len(list))
	for _, element := range list {
		count[nameOf(element)]++
	}
	paths := make([]*Path, len(list))
	for i, element := range list {
		if name := nameOf(element); name != "" && count[name] == 1 {
			paths[i] = p.Key(name)
		} else {
			paths[i] = p.Index(i)
		}
	}
	return paths
}

func nameOf(element any) string {
	object, _ := element.(map[string]any)
	name, _ := object["name"].(string)
	if len(name) > maxName {
		return ""
	}
	return name
}

const maxName = 253

func (p *Path) String() string {
	if p == nil {
		return ""
	}
	steps := []string{}
	for ; p != nil; p = p.parent {
		steps = append(steps, p.step)
	}
	slices.Reverse(steps)
	return strings.TrimPrefix(strings.Join(steps, ""), ".")
}

// DidYouMean suggests a candidate, as the end of a message.
func DidYouMean(word string, candidates []string) string {
	return wording.DidYouMean(word, candidates)
}
