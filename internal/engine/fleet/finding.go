package fleet

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Finding is one mistake in the input.
type Finding struct {
	Path    string // of the value, as in HCL: workloads["hello"].labels["a b"]; empty for the whole input
	Message string // a sentence or clause without the path
}

func (f Finding) String() string {
	if f.Path == "" {
		return f.Message
	}
	return f.Path + ": " + f.Message
}

// Findings are several mistakes. As an error they are one line each, the same of several objects one line together.
type Findings []Finding

func (f Findings) Error() string {
	var lines []string
	for _, finding := range f.Group() {
		lines = append(lines, finding.String())
	}
	return strings.Join(lines, "\n")
}

var (
	// keysInPaths are the keys and numbers of elements in paths.
	keysInPaths = regexp.MustCompile(`\[("(\\.|[^"\\])*"|\d+)\]`)
	quotedTexts = regexp.MustCompile(`"(\\.|[^"\\])*"`)
)

// MaxAlike is how many mistakes are listed that differ only by what they quote, as those of names that one expression has made.
const MaxAlike = 5

// WithoutQuotes is a message without what it quotes.
func WithoutQuotes(message string) string { return quotedTexts.ReplaceAllString(message, `""`) }

// Report adds a finding at a path.
func (f *Findings) Report(path *Path, format string, arguments ...any) {
	*f = append(*f, Finding{Path: path.String(), Message: fmt.Sprintf(format, arguments...)})
}

// Group has one finding in place of those that say the same of the same attribute of several objects, which are often made
// by one expression. Its path lists the first of theirs: `clusters["a"].labels, clusters["b"].labels and 3 more`. Of those that differ
// only by what they quote the first are listed, and one finding has the paths of all others.
func (f Findings) Group() Findings {
	paths := make(map[Finding][]string, len(f)) // by the finding with the keys taken out of its path
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

// Path is the path of a value in the input. The zero value is the whole input.
type Path struct {
	parent *Path
	step   string
}

// PathOf returns the path of an object of a collection of the fleet: workloads["hello"].
func PathOf(collection, name string) *Path { return (*Path)(nil).Attribute(collection).Key(name) }

// TargetPath returns the path of a deployment target.
func TargetPath(workload, target string) *Path {
	return PathOf("workloads", workload).Attribute("deployment_targets").Key(target)
}

// Attribute returns the path of an attribute of the object at p.
func (p *Path) Attribute(name string) *Path {
	return &Path{parent: p, step: "." + name}
}

// Key returns the path of an element of the map at p.
func (p *Path) Key(key string) *Path {
	return &Path{parent: p, step: "[" + strconv.Quote(key) + "]"}
}

// Index returns the path of an element of the list at p.
func (p *Path) Index(index int) *Path {
	return &Path{parent: p, step: "[" + strconv.Itoa(index) + "]"}
}

// elementPaths returns the paths of the elements of a list at p. An object has its name in the path where the name is
// known and unique, else its number.
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

// nameOf returns the name of an object; "" where it has none that can be shown.
func nameOf(element any) string {
	object, _ := element.(map[string]any)
	name, _ := object["name"].(string)
	if len(name) > maxName {
		return ""
	}
	return name
}

// maxName is the length of the longest name, that of a DNS subdomain.
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

// DidYouMean is the end of a message about a word that is not among the candidates.
func DidYouMean(word string, candidates []string) string {
	return wording.DidYouMean(word, candidates)
}
