// Package evidence reads and writes facts reported by clusters and measured figures, and merges them with the reports
// of agents. It is pure. Times are in whole seconds of UTC.
package evidence

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Facts holds the facts of clusters at one time.
type Facts struct {
	Time     time.Time
	Clusters map[string]ClusterFacts
}

// ClusterFacts holds the facts of one cluster.
type ClusterFacts struct {
	// Status is ready if the cluster answered and its nodes are ready, since the moment when a majority was. It is
	// unknown if the cluster did not answer or denied listing its nodes.
	verdict.Status
	// Facts are texts, numbers, lists and maps as in JSON; nil if the cluster did not answer.
	Facts map[string]any
}

// Measurements holds figures measured at one time.
type Measurements struct {
	Environment string
	Time        time.Time
	Checks      []Check // as configured
}

// SubjectKind is the kind of subject of a check's figures.
type SubjectKind string

// The kinds of subjects.
const (
	OfCluster    SubjectKind = "cluster"    // by name
	OfHost       SubjectKind = "host"       // by name
	OfAssignment SubjectKind = "assignment" // by key
	OfFleet      SubjectKind = "fleet"      // one figure, under ""
)

// subjectKinds lists all subject kinds.
var subjectKinds = []SubjectKind{OfCluster, OfHost, OfAssignment, OfFleet}

// SubjectKindNames returns the names of all subject kinds.
func SubjectKindNames() []string {
	names := make([]string, len(subjectKinds))
	for i, of := range subjectKinds {
		names[i] = string(of)
	}
	return names
}

// MaxChecks limits the checks of measurements.
const MaxChecks = 50

// Check is one measurement with the expressions that judge it.
type Check struct {
	Name string      `json:"name"`
	Of   SubjectKind `json:"of"`
	Unit string      `json:"unit,omitempty"` // such as "%"
	// Pass and Fail are CEL over value, samples and rest; Fail may be "".
	Pass    string            `json:"pass"`
	Fail    string            `json:"fail,omitempty"`
	Message string            `json:"message,omitempty"` // why there are no figures
	Figures map[string]Figure `json:"-"`

	judgement *judgement
}

// Figure is a measured value, or the reason why there is none.
type Figure struct {
	Value   float64
	Samples *float64 // number of events; nil unless asked for
	Message string   // why there is no value
}
