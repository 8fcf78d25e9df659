package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Finding is one thing that is wrong in the input, and where.
type Finding struct {
	Path    string // as one would write it in HCL: workloads["hello"].labels["a b"]; empty is the whole input
	Message string // a sentence or clause without the path
}

func (f Finding) String() string {
	if f.Path == "" {
		return f.Message
	}
	return f.Path + ": " + f.Message
}

// Findings are all that is wrong. As an error they read as one line for each.
type Findings []Finding

func (f Findings) Error() string {
	lines := make([]string, len(f))
	for i, finding := range f {
		lines[i] = finding.String()
	}
	return strings.Join(lines, "\n")
}

// Path says where in the input a value stands. The zero value is the whole input.
type Path struct {
	parent *Path
	step   string
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

// elementPaths are those of the elements of a list at p. Objects are named, not numbered, wherever the
// name is known and no other has it.
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

// nameOf returns the name of an object that has one; "" for one that is no name at all.
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

// nearest returns the candidate that word was most likely meant to be, or "".
func nearest(word string, candidates []string) string {
	best, bestDistance := "", max(2, len(word)/3)+1
	for _, candidate := range candidates {
		if distance := editDistance(word, candidate); distance < bestDistance {
			best, bestDistance = candidate, distance
		}
	}
	return best
}

// DidYouMean is the end of a message about a word that is not among the candidates.
func DidYouMean(word string, candidates []string) string {
	if best := nearest(word, candidates); best != "" {
		return fmt.Sprintf("; did you mean %q?", best)
	}
	return ""
}

// editDistance counts the insertions, deletions, substitutions and swaps of neighbours between words.
func editDistance(a, b string) int {
	before, previous := make([]int, len(b)+1), make([]int, len(b)+1)
	current := make([]int, len(b)+1)
	for j := range previous {
		previous[j] = j
	}
	for i := 1; i <= len(a); i++ {
		current[0] = i
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			current[j] = min(previous[j]+1, current[j-1]+1, previous[j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				current[j] = min(current[j], before[j-2]+1)
			}
		}
		before, previous, current = previous, current, before
	}
	return previous[len(b)]
}
