package kinds_test

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
)

const widgets = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.com}
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  scope: Namespaced
  versions:
    - name: v1
      served: true
      storage: true
      schema:
        openAPIV3Schema:
          type: object
          properties:
            spec:
              type: object
              x-kubernetes-validations: [{rule: "self.size < 3 || has(self.name)"}]
              properties:
                size: {type: integer, maximum: 7}
                name: {type: string, pattern: "^[a-z]+$", maxLength: 5}
                parts: {type: array, maxItems: 2, items: {type: object, nullable: true, properties: {a: {x-kubernetes-int-or-string: true}}}}
                more: {type: object, additionalProperties: {type: boolean}, maxProperties: 2}
                any: {x-kubernetes-preserve-unknown-fields: true}
`

// FuzzCheck compares the verdict about an object with the violations of the library. The verdict may come from an earlier object
// of the same shape.
func FuzzCheck(f *testing.F) {
	for _, o := range append(changedObjects(),
		"{apiVersion: example.com/v1, kind: Widget, spec: {size: 2, name: abc, parts: [{a: 1}, null], more: {a: true}, any: {b: [1]}}}",
		"{apiVersion: example.com/v1, kind: Widget, spec: {size: 5}}",
		"{apiVersion: example.com/v1, kind: Widget, spec: {size: 1.5, name: ABC, parts: [1, {a: x}, {}], more: {a: true, b: null, c: true}}}",
		"{apiVersion: example.com/v2, kind: Widget, metadata: {labels: {a: 1}}}",
	) {
		f.Add(widgets, o)
	}
	f.Fuzz(func(t *testing.T, definition, text string) {
		c := catalog(t, "1.34")
		if defined, err := fleet.ReadObjects(definition); err == nil && len(defined) == 1 {
			if read, err := kinds.ReadDefinition(defined[0]); err == nil {
				c = c.With(read)
			}
		}
		objects, err := fleet.ReadObjects(text)
		if err != nil {
			return
		}
		for _, o := range objects {
			accepted := c.Accepts(o)
			kinds.Forget(c, o)
			if found := c.Check(o); accepted != (len(found) == 0) {
				t.Errorf("got accepted %v and violations %v", accepted, found)
			}
		}
	})
}
