package fleet

import "cmp"

// Hydration configures how config containers merge. Empty fields have defaults.
type Hydration struct {
	Precedence string `json:"precedence,omitempty"`
	OnConflict string `json:"on_conflict,omitempty"`
	Lists      string `json:"lists,omitempty"`
	ListKey    string `json:"list_key,omitempty"`
}

var hydrationKind = defineKind(Table{
	Name:    "hydration",
	Meaning: "How config containers merge.",
}, func(h *Hydration) []row {
	return []row{
		choiceAttribute(&h.Precedence, Attribute{
			Default: "specificity", Allowed: []string{"specificity", "name"},
			Meaning: "It decides between containers of equal priority. `specificity`: the number of labels, then the name; `name`: the name alone.",
		}),
		choiceAttribute(&h.OnConflict, Attribute{
			Default: "error", Allowed: []string{"error", "warn", "override"},
			Meaning: "It applies where nothing but the name decides between containers that disagree: an error, a warning, or with `override` " +
				"neither, and the name decides.",
		}),
		choiceAttribute(&h.Lists, Attribute{
			Default: "replace", Allowed: []string{"replace", "append", "merge"},
			Meaning: "`replace`: the later list takes the place of the earlier; `append`: it is added to it; `merge`: objects with the same " +
				"`list_key` are merged, and all else is added.",
		}),
		storedAttribute(&h.ListKey, Attribute{
			Default: "name", Meaning: "The key that tells objects in lists apart, for `merge`.",
		}, readText),
	}
})

// HydrationOrDefault fills in the defaults.
func (f *Fleet) HydrationOrDefault() Hydration {
	hydration := Hydration{}
	if f.Hydration != nil {
		hydration = *f.Hydration
	}
	hydration.Precedence = cmp.Or(hydration.Precedence, hydrationKind.defaultText("precedence"))
	hydration.OnConflict = cmp.Or(hydration.OnConflict, hydrationKind.defaultText("on_conflict"))
	hydration.Lists = cmp.Or(hydration.Lists, hydrationKind.defaultText("lists"))
	hydration.ListKey = cmp.Or(hydration.ListKey, hydrationKind.defaultText("list_key"))
	return hydration
}

func readHydration(d *decoder, root *ObjectReader) {
	d.Fleet.Hydration = cmp.Or(ReadObject(root, "hydration", hydrationKind.decodeNew), d.Fleet.Hydration)
}
