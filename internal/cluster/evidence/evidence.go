// Package evidence has what is known of clusters besides what agents report of an assignment: facts that clusters say of
// themselves, and figures that were measured. It reads and writes their documents, and says what several documents together
// call ready. It is pure.
package evidence

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// Facts are what clusters said of themselves at one moment.
type Facts struct {
	Time     time.Time // in whole seconds of UTC
	Clusters map[string]ClusterFacts
}

// ClusterFacts are what one cluster said of itself.
type ClusterFacts struct {
	// Status is ready where the cluster answered and its nodes are ready, since more than half of them have been. It is unknown
	// where the cluster did not answer, or does not let its nodes be listed.
	verdict.Status
	// Facts are its facts by name, as a proof has them: texts, numbers, lists and maps of them, as in JSON; nil where the
	// cluster did not answer.
	Facts map[string]any
}

// Measurements are figures that were measured at one moment.
type Measurements struct {
	Environment string    // of the fleet that they are about
	Time        time.Time // in whole seconds of UTC
	Checks      []Check   // in the order of the configuration
}

// Of is what the figures of a check are of.
type Of string

// What figures are of.
const (
	OfCluster    Of = "cluster"    // by the name of a cluster
	OfHost       Of = "host"       // by the name of a host
	OfAssignment Of = "assignment" // by the key of an assignment
	OfFleet      Of = "fleet"      // one figure, by ""
)

// Ofs are all of them.
var Ofs = []Of{OfCluster, OfHost, OfAssignment, OfFleet}

// OfNames are all of them as texts.
func OfNames() []string {
	names := make([]string, len(Ofs))
	for i, of := range Ofs {
		names[i] = string(of)
	}
	return names
}

// MaxChecks is how many checks measurements may have.
const MaxChecks = 50

// Check is one measurement, with the expressions that judge its figures.
type Check struct {
	Name string `json:"name"`
	Of   Of     `json:"of"`
	Unit string `json:"unit,omitempty"` // after figures in texts, such as "%"
	// Pass and Fail are CEL over value, samples and rest; Fail may be "".
	Pass string `json:"pass"`
	Fail string `json:"fail,omitempty"`
	// Message says why there are no figures at all; "" where there are.
	Message string            `json:"message,omitempty"`
	Figures map[string]Figure `json:"-"`

	judgement *judgement
}

// Figure is one figure of a check.
type Figure struct {
	Value   float64
	Samples *float64 // how many events the figure is of; nil where that was not asked
	// Message says why there is no value; "" where there is one.
	Message string
}
