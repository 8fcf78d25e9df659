package observe_test

import (
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
)

func TestEvidenceWithoutClustersIsValid(t *testing.T) {
	t.Parallel()
	about := observe.About{Owner: "web", Environment: "dev", Branch: "main", Path: "clusters"}
	evidence := &observe.Evidence{About: about, Time: time.Date(2026, 11, 22, 1, 30, 0, 0, time.UTC)}
	read, err := observe.Parse(evidence.Marshal())
	if err != nil || read.About != about || !read.Time.Equal(evidence.Time) || len(read.Clusters)+len(read.Trees) > 0 {
		t.Errorf("read %+v, %v", read, err)
	}
}
