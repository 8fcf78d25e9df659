package fleet

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// CheckObject checks one object of a collection without its references. Paths are relative to it.
func CheckObject(name string, value any) Findings {
	d := newDecoder()
	d.EnvironmentKnown = false // any will do
	for _, of := range append(slices.Clone(collections), collection{"environments", decodeEnvironmentWithRepo}) {
		if of.name != name {
			continue
		}
		if o, _ := d.object(CollectionTable(name), nil, value); o != nil {
			of.decode(d, o)
		}
		return d.Findings
	}
	return Findings{{Message: "no collection of a fleet is called " + name}}
}

func decodeEnvironmentWithRepo(_ *decoder, o *ObjectReader) belonging {
	o.Require("gitops_repo", "is required")
	decodeEnvironment(o)
	return inEnvironment
}

// DecodeGitopsRepo decodes {url, branch, path}. known is false if any part is unknown.
func DecodeGitopsRepo(value any) (repo folder.Location, known bool, findings Findings) {
	r := &Reader{}
	if o, _ := r.object(&locationKind.Table, nil, value); o != nil {
		repo = locationKind.decode(o)
		o.Finish()
	} else {
		r.Unknown = true
	}
	return repo, !r.Unknown, r.Findings
}

// DecodeSelector is [DecodeGitopsRepo] for a selector.
func DecodeSelector(value any) (selector *Selector, known bool, findings Findings) {
	o := newAttributeReader(&preferenceKind.Table, "selector", value)
	selector = ReadSelector(o, "selector")
	return selector, !o.unknown, o.reader.Findings
}

// DecodeLabels is [DecodeGitopsRepo] for a map of labels.
func DecodeLabels(value any) (labels Labels, known bool, findings Findings) {
	o := newAttributeReader(&clusterKind.Table, "labels", value)
	labels = readLabels(o, "labels")
	return labels, !o.unknown, o.reader.Findings
}

// DecodeMerge decodes {lists, list_key}; null means the defaults.
func DecodeMerge(value any) (options Hydration, known bool, findings Findings) {
	o := newAttributeReader(&fleetTable, "hydration", value)
	o.written = map[string]string{"hydration": "options"}
	given := ReadObject(o, "hydration", func(h *ObjectReader) Hydration {
		return Hydration{Lists: readOneOfOrNone(h, "lists"), ListKey: readText(h, "list_key")}
	})
	return (&Fleet{Hydration: &given}).HydrationOrDefault(), !o.unknown, o.reader.Findings
}

func newAttributeReader(table *Table, attribute string, value any) *ObjectReader {
	return &ObjectReader{reader: &Reader{}, table: table, fields: map[string]any{attribute: value}}
}
