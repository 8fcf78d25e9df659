package reconciler

import "strings"

// Copy is a folder of a source that an ArtifactGenerator of Flux copies into an artifact. From and To are paths, without a
// slash at either end.
type Copy struct {
	Kind, Name, From, To string
}

// IsGenerator says whether objects of a kind make ExternalArtifacts of folders of sources.
func IsGenerator(group, kind string) bool {
	return group == "source.extensions.fluxcd.io" && kind == "ArtifactGenerator"
}

// IsGenerated says whether objects of a kind are made by a generator.
func (k *Kind) IsGenerated() bool { return k.Kind == "ExternalArtifact" }

// CopiesOf returns what a generator copies into the artifact of a name, of that what is copied as a whole.
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
		one.each("copy", func(entry *fields) {
			alias, from, _ := strings.Cut(strings.TrimPrefix(entry.text("from"), "@"), "/")
			from, isAll := strings.CutSuffix("/"+from, "/**")
			to, isInto := strings.CutPrefix(entry.text("to"), "@artifact/")
			source, isKnown := sources[alias]
			if isAll && isInto && isKnown && !strings.ContainsAny(from, "*?[") && len(entry.list("exclude")) == 0 {
				source.From, source.To = strings.Trim(from, "/"), strings.Trim(to, "/")
				copies = append(copies, source)
			}
		})
	})
	return copies
}
