package changes

import (
	"bytes"
	"errors"
	"io"

	"go.yaml.in/yaml/v3"
)

// yamlObject is one document of a file.
type yamlObject struct {
	node                  *yaml.Node
	kind, namespace, name string
}

// yaml compares the documents of two texts, each with the one of the same kind, namespace and name. Aliases
// are not followed: a change of what they stand for is one where it is written.
func (c *collector) yaml(before, after []byte) bool {
	old, ok := readYAML(before)
	wanted, wantedOK := readYAML(after)
	if !ok || !wantedOK {
		return false
	}
	partner := matchObjects(old, wanted)
	several := len(old) > 1 || len(wanted) > 1
	taken := make([]bool, len(wanted))
	for i := range old {
		if partner[i] < 0 {
			c.differs(c.shownKind(&old[i], several), nil, isGone)
			continue
		}
		other := partner[i]
		taken[other] = true
		c.nodes(nodeDiff{
			kind: c.shownKind(&wanted[other], several),
			elsewhere: func(at []string) bool {
				return hasElsewhere(old, i, at) || hasElsewhere(wanted, other, at)
			},
		}, nil, old[i].node, wanted[other].node)
	}
	for i := range wanted {
		if !taken[i] {
			c.differs(c.shownKind(&wanted[i], several), nil, isNew)
		}
	}
	return true
}

// nodeDiff is the comparison of one object of a file.
type nodeDiff struct {
	kind      string // said with keys that other objects of the file have, too
	elsewhere func(at []string) bool
}

func (c *collector) nodes(of nodeDiff, at []string, before, after *yaml.Node) {
	report := func(at []string, what string) {
		kind := of.kind
		if kind != "" && !of.elsewhere(at) {
			kind = ""
		}
		c.differs(kind, at, what)
	}
	if before.Kind != after.Kind {
		report(at, "")
		return
	}
	switch before.Kind {
	case yaml.MappingNode:
		old, ok := membersOf(before)
		wanted, wantedOK := membersOf(after)
		if !ok || !wantedOK {
			if !sameNode(before, after) {
				report(at, "")
			}
			return
		}
		for _, key := range unionOfKeys(old, wanted) {
			below := under(at, key)
			switch one, other := old[key], wanted[key]; {
			case other == nil:
				report(below, isGone)
			case one == nil:
				report(below, isNew)
			default:
				c.nodes(of, below, one, other)
			}
		}
	case yaml.SequenceNode:
		if len(before.Content) != len(after.Content) {
			report(at, "")
			return
		}
		for i := range before.Content {
			c.nodes(of, under(at, index(i)), before.Content[i], after.Content[i])
		}
	default:
		if !sameNode(before, after) && !c.inside(at, before, after) {
			report(at, "")
		}
	}
}

// inside compares the file that a ConfigMap of configuration holds as its one key.
func (c *collector) inside(at []string, before, after *yaml.Node) bool {
	if !c.config || len(at) != 2 || at[0] != "data" || roleOf(at[1]) != configRole {
		return false
	}
	extension := extensionOf(at[1])
	if extension == ".yaml" || extension == ".yml" {
		return false
	}
	count, more := len(c.keys), c.more
	return c.texts(extension, at, []byte(before.Value), []byte(after.Value)) && (len(c.keys) > count || c.more > more)
}

// sameNode says whether two nodes are equal, whatever their layout and comments.
func sameNode(a, b *yaml.Node) bool {
	if a.Kind != b.Kind || a.Value != b.Value || a.Tag != b.Tag || len(a.Content) != len(b.Content) {
		return false
	}
	for i := range a.Content {
		if !sameNode(a.Content[i], b.Content[i]) {
			return false
		}
	}
	return true
}

// membersOf returns a mapping's members; false where a key is not a scalar, or stands twice.
func membersOf(node *yaml.Node) (map[string]*yaml.Node, bool) {
	members := make(map[string]*yaml.Node, len(node.Content)/2)
	for i := 0; i+1 < len(node.Content); i += 2 {
		key := node.Content[i]
		if key.Kind != yaml.ScalarNode || members[key.Value] != nil {
			return nil, false
		}
		members[key.Value] = node.Content[i+1]
	}
	return members, true
}

// readYAML reads every document that holds anything.
func readYAML(text []byte) ([]yamlObject, bool) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	var objects []yamlObject
	for {
		var document yaml.Node
		err := decoder.Decode(&document)
		if errors.Is(err, io.EOF) {
			return objects, true
		}
		if err != nil {
			return nil, false
		}
		if len(document.Content) == 0 || document.Content[0].Tag == "!!null" {
			continue
		}
		object := yamlObject{node: document.Content[0]}
		object.kind = textAt(object.node, "kind")
		object.namespace = textAt(object.node, "metadata", "namespace")
		object.name = textAt(object.node, "metadata", "name")
		if !isKind(object.kind) || textAt(object.node, "apiVersion") == "" {
			object.kind = ""
		}
		objects = append(objects, object)
	}
}

// isKind says whether a text looks like the kind of a Kubernetes object.
func isKind(text string) bool {
	if text == "" || len(text) > 63 || text[0] < 'A' || text[0] > 'Z' {
		return false
	}
	for i := 0; i < len(text); i++ {
		if c := text[i]; !isKeyByte(c) || c == '.' || c == '/' || c == '_' || c == '-' {
			return false
		}
	}
	return true
}

func textAt(node *yaml.Node, keys ...string) string {
	if node = nodeAt(node, keys); node != nil && node.Kind == yaml.ScalarNode {
		return node.Value
	}
	return ""
}

func nodeAt(node *yaml.Node, keys []string) *yaml.Node {
	for _, key := range keys {
		var found *yaml.Node
		switch node.Kind {
		case yaml.MappingNode:
			for i := 0; i+1 < len(node.Content); i += 2 {
				if node.Content[i].Kind == yaml.ScalarNode && node.Content[i].Value == key {
					found = node.Content[i+1]
				}
			}
		case yaml.SequenceNode:
			for i := range node.Content {
				if index(i) == key {
					found = node.Content[i]
				}
			}
		}
		if found == nil {
			return nil
		}
		node = found
	}
	return node
}

// hasElsewhere says whether another of the objects has the path.
func hasElsewhere(objects []yamlObject, but int, at []string) bool {
	for i := range objects {
		if i != but && nodeAt(objects[i].node, at) != nil {
			return true
		}
	}
	return false
}

// shownKind is the kind of one object of several. In files of configuration what looks like a kind may be
// a value.
func (c *collector) shownKind(object *yamlObject, several bool) string {
	switch {
	case !several || c.config:
		return ""
	case object.kind == "":
		return "object"
	}
	return object.kind
}

// matchObjects returns, for each object before, the one after that it became, or -1: that of the same
// kind, namespace and name; else of kind and name; else the next one of the kind; else the next one.
func matchObjects(before, after []yamlObject) []int {
	partner, taken := make([]int, len(before)), make([]bool, len(after))
	for i := range partner {
		partner[i] = -1
	}
	type identity struct{ kind, namespace, name string }
	for _, of := range []func(*yamlObject) identity{
		func(o *yamlObject) identity { return identity{o.kind, o.namespace, o.name} },
		func(o *yamlObject) identity { return identity{o.kind, "", o.name} },
		func(o *yamlObject) identity { return identity{o.kind, "", ""} },
	} {
		free := map[identity][]int{}
		for i := range after {
			if !taken[i] {
				free[of(&after[i])] = append(free[of(&after[i])], i)
			}
		}
		for i := range before {
			same := of(&before[i])
			if partner[i] < 0 && len(free[same]) > 0 {
				partner[i], taken[free[same][0]] = free[same][0], true
				free[same] = free[same][1:]
			}
		}
	}
	return partner
}
