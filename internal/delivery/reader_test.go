package delivery_test

import (
	"context"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// The plan of a rename reads evidence under the new name before any record has that name.
func TestRecordsAreFoundBeforeARename(t *testing.T) {
	s := newSite(t)
	location := s.location("gitops.git", "dev")
	after := wantedTrees(t, "1", 2, "large", "small")
	s.mustApply(delivery.Desired{Owner: owner(location, "dev"), After: after}, "1")
	more := after.Clone()
	more["new"] = map[string]string{"target-00": ""}
	for name, test := range map[string]struct {
		wanted  folder.Trees
		records int
		label   string
	}{
		"dev":  {more, 4, ""},
		"next": {more, 4, "dev"},
		"none": {nil, 0, ""},
		"edge": {folder.Trees{"edge": {"target-00": ""}}, 0, ""}, // a new owner does not read folders of other owners
	} {
		written, err := s.newService().ReadOwner(context.Background(), owner(location, name), test.wanted)
		if err != nil || len(written.Records) != test.records {
			t.Fatalf("%s: %v, %v", name, written.Records, err)
		}
		for key, record := range written.Records {
			if record.OwnerLabel != test.label || record.Tree != after[key.Host][key.DeploymentTarget] {
				t.Errorf("%s: %s: got %+v", name, key, record)
			}
		}
	}
	// If the folders belong to two owners, neither is the former owner.
	s.mustApply(delivery.Desired{Owner: owner(location, "edge"), After: wantedTrees(t, "1", 1, "edge")}, "1")
	more["edge"] = map[string]string{"target-00": ""}
	if written, err := s.newService().ReadOwner(context.Background(), owner(location, "next"), more); err != nil || len(written.Records) != 0 {
		t.Errorf("with two owners: got %v, %v", written.Records, err)
	}
}
