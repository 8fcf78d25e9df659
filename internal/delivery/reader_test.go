package delivery_test

import (
	"context"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// The plan that renames an owner reads evidence by the new name, which no record has yet.
func TestWhatIsWrittenIsFoundBeforeARenameIsApplied(t *testing.T) {
	s := newSite(t)
	at := s.location("gitops.git", "dev")
	after := wanted(t, "1", 2, "large", "small")
	s.mustApply(delivery.Desired{Owner: owner(at, "dev"), After: after}, "1")
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
		"edge": {folder.Trees{"edge": {"target-00": ""}}, 0, ""}, // others' folders are no business of a new owner
	} {
		written, err := s.process().ReadOwner(context.Background(), owner(at, name), test.wanted)
		if err != nil || len(written.Records) != test.records {
			t.Fatalf("%s: %v, %v", name, written.Records, err)
		}
		for key, record := range written.Records {
			if record.OwnerLabel != test.label || record.Tree != after[key.Host][key.DeploymentTarget] {
				t.Errorf("%s: %s has %+v", name, key, record)
			}
		}
	}
	// Where the folders are of two owners, neither is the former one.
	s.mustApply(delivery.Desired{Owner: owner(at, "edge"), After: wanted(t, "1", 1, "edge")}, "1")
	more["edge"] = map[string]string{"target-00": ""}
	if written, err := s.process().ReadOwner(context.Background(), owner(at, "next"), more); err != nil || len(written.Records) != 0 {
		t.Errorf("of two owners: %v, %v", written.Records, err)
	}
}
