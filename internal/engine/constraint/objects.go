package constraint

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/pods"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

type folderObject struct {
	file                  string // "" for final objects
	madeBy                objects.Origin
	on                    objects.Occasion // when the final object exists, or has this form
	apiVersion, kind      string
	namespace, objectName string
	value                 map[string]any

	found  []pods.Pod // cached pods
	sought bool
}

// pods returns the object's pods. Reconciler objects have none, even in chart values: the final objects have them.
func (o *folderObject) pods() []pods.Pod {
	if !o.sought {
		o.sought = true
		group, _, hasGroup := strings.Cut(o.apiVersion, "/")
		if !hasGroup || reconciler.KindOf(group, o.kind) == nil {
			o.found = pods.Find(o.value)
		}
	}
	return o.found
}

func (o *folderObject) String() string {
	name := o.kind + " " + o.objectName
	if o.namespace != "" {
		name = o.kind + " " + o.namespace + "/" + o.objectName
	}
	if o.on != "" {
		name += " on " + string(o.on)
	}
	return name
}

func (r *rule) isAbout(o *folderObject) bool {
	return r.isAboutKind(o) && (!r.ofPods || len(o.pods()) > 0)
}

// mayBeAbout is isAbout for a text. An uncertain kind is "".
func (r *rule) mayBeAbout(kind, text string) bool {
	return (r.kinds == nil || kind == "" || r.kindNames[kind]) && (!r.ofPods || pods.MayBeIn(text))
}

func (r *rule) isAboutKind(o *folderObject) bool {
	if r.kinds == nil || r.kinds[o.kind] {
		return true
	}
	if !r.kindNames[o.kind] {
		return false
	}
	group, _, hasGroup := strings.Cut(o.apiVersion, "/")
	return r.kinds[o.apiVersion+"/"+o.kind] || hasGroup && r.kinds[group+"/"+o.kind]
}

// readObjects returns the objects in files and lists. unreadable is the first invalid file. mayPass may skip documents
// by kind and text before they are parsed.
func readObjects(files []render.AssignmentFile, mayPass func(kind, text string) bool) (found []folderObject, unreadable string) {
	for _, file := range files {
		var err error
		switch path.Ext(file.Name) {
		case ".yaml", ".yml":
			var values []any
			values, err = fleet.ReadYAMLDocuments(string(file.Content), func(text string) bool {
				kind, _ := plainKind(text)
				return mayPass(kind, text)
			})
			for _, value := range values {
				found = appendObject(found, file.Name, objects.FromFlotilla, value, 0)
			}
		case ".json":
			var value any
			if value, err = fleet.ParseJSON(string(file.Content)); err == nil {
				found = appendObject(found, file.Name, objects.FromFlotilla, value, 0)
			}
		}
		if err != nil && unreadable == "" {
			unreadable = file.Name
		}
	}
	return found, unreadable
}

func readFinalObjects(final []objects.FinalObject, mayPass func(kind, text string) bool) (found []folderObject, err error) {
	for i := range final {
		if mayPass(final[i].Kind, string(final[i].YAML)) {
			continue
		}
		value, err := fleet.ParseYAML(string(final[i].YAML))
		if err != nil {
			return nil, fmt.Errorf("%s %s cannot be read: %w", final[i].Kind, final[i].Name, err)
		}
		before := len(found)
		if found = appendObject(found, "", final[i].From, value, 0); len(found) == before+1 {
			found[before].namespace = cmp.Or(final[i].Namespace, found[before].namespace) // for namespaces that are set when applied
			found[before].on = final[i].On
		}
	}
	return found, nil
}

const maxListDepth = 8

func appendObject(found []folderObject, file string, madeBy objects.Origin, value any, depth int) []folderObject {
	fields, _ := value.(map[string]any)
	apiVersion, _ := fields["apiVersion"].(string)
	kind, _ := fields["kind"].(string)
	if apiVersion == "" || kind == "" {
		return found // not a manifest, for example configuration
	}
	if items, isList := objects.Items(fields); isList && depth < maxListDepth {
		for _, item := range items {
			found = appendObject(found, file, madeBy, item, depth+1)
		}
		return found
	}
	if secret.IsSecret(fields) { // Messages of rules enter errors and the state.
		fields = secret.Masked(fields, func(any, ...string) any { return "(hidden)" })
	}
	o := folderObject{file: file, madeBy: madeBy, apiVersion: apiVersion, kind: kind, value: fields}
	metadata, _ := fields["metadata"].(map[string]any)
	o.namespace, _ = metadata["namespace"].(string)
	o.objectName, _ = metadata["name"].(string)
	return append(found, o)
}

// plainKind finds the kind of a YAML document without parsing it, if each unindented line is a plain key, a comment or
// a list item. The kind of a list is uncertain.
func plainKind(text string) (kind string, certain bool) {
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \r\n")
		if line == "" || line[0] == ' ' || line[0] == '#' || line[0] == '-' && !strings.HasPrefix(line, "---") {
			continue
		}
		key, value, ok := strings.Cut(line, ":")
		if !ok || !isWord(key) || key == "items" {
			return "", false
		}
		if key != "kind" {
			continue
		}
		value = strings.TrimLeft(value, " ")
		if kind != "" || !isWord(value) {
			return "", false
		}
		kind = value
	}
	return kind, kind != ""
}

func isWord(text string) bool {
	for i := range len(text) {
		if c := text[i]; (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') {
			return false
		}
	}
	return text != ""
}
