package reconciler

import "strings"

// Copy is a folder of a source that a Flux ArtifactGenerator copies into an artifact. From and To have no leading or
// trailing slash.
type Copy struct {
	Kind, Name, From, To string
}

// IsGenerator reports whether objects of a kind create ExternalArtifacts.
func IsGenerator(group, kind string) bool {
	return group == "source.extensions.fluxcd.io" && kind == "ArtifactGenerator"
}

// IsGenerated reports whether a generator creates the objects of the kind.
func (k *ObjectKind) IsGenerated() bool { return k.Kind == "ExternalArtifact" }

// CopiesOf returns the whole folders that a generator copies into an artifact.
func CopiesOf(spec map[string]any, artifact string) (copies []Copy) {
	read := readFields(map[string]any{"spec": spec}, "spec")
	sources := map[string]Copy{}
	read.each("sources", func(one *fields) {
		sources[one.text("alias")] = Copy{Kind: one.text("kind"), Name: one.text("name")}
	})
	read.each("artifacts", func(one *fields) {
		if one.text("name") != artifact {
			return
		}
		one.each("copy", func(item *fields) {
			alias, from, _ := strings.Cut(strings.TrimPrefix(item.text("from"), "@"), "/")
			from, isAll := strings.CutSuffix("/"+from, "/**")
			to, isInto := strings.CutPrefix(item.text("to"), "@artifact/")
			source, isKnown := sources[alias]
			if isAll && isInto && isKnown && !strings.ContainsAny(from, "*?[") && isEmpty(item.value("exclude")) {
				source.From, source.To = strings.Trim(from, "/"), strings.Trim(to, "/")
				copies = append(copies, source)
			}
		})
	})
	return copies
}
