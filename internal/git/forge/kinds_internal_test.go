package forge

import (
	"net/url"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"
)

// A kind implements labels and auto-merge if and only if it declares them.
func TestKindsHaveTheCapabilitiesOfTheirAPI(t *testing.T) {
	t.Parallel()
	for _, kind := range Kinds() {
		connected, err := kind.connect(session{client: webtest.Client, at: address{kind: kind, api: &url.URL{Scheme: "https", Host: "git.example.com", Path: "/"}}})
		if err != nil {
			t.Fatalf("%s: %v", kind.Title, err)
		}
		if _, has := connected.(labelAdder); has != kind.Labels {
			t.Errorf("%s: Labels is %t, and its API has them: %t", kind.Title, kind.Labels, has)
		}
		if _, has := connected.(autoMerger); has != kind.AutoMerge {
			t.Errorf("%s: AutoMerge is %t, and its API has it: %t", kind.Title, kind.AutoMerge, has)
		}
		if kind.Reviewers == "" || kind.isReviewer == nil || kind.MaxBody == 0 {
			t.Errorf("%s has no reviewers or no bodies", kind.Title)
		}
	}
}
