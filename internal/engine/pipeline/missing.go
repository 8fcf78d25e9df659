package pipeline

import (
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// missing records gaps of a chart: see [objects.Rendering].
type missing struct {
	chart   string
	apis    []string
	schemas []objects.RemoteSchema
}

func missingOf(result *objects.Rendering) missing {
	if result.Chart == nil {
		return missing{}
	}
	return missing{result.Chart.Name, result.MissingAPIs, result.RemoteSchemas}
}

func (f *diagnostics) addRemoteSchemas(r *Rendering) {
	byAddress := namesBy{}
	for i := range r.folders {
		for _, schema := range r.folders[i].missing.schemas {
			byAddress.add(schema.URL, schema.Chart)
		}
	}
	if len(byAddress) == 0 {
		return
	}
	var lines []string
	for _, address := range slices.Sorted(maps.Keys(byAddress)) {
		lines = append(lines, fmt.Sprintf("%s: %s", address, byAddress[address].count("chart", "charts")))
	}
	const message = "schemas of these charts refer to addresses that rendering does not read, so a plan accepts values that they " +
		"refuse: the agent reads them, and fails if values are wrong or an address does not answer. To have no values checked, set " +
		"disableSchemaValidation of install and upgrade (Flux), or source.helm.skipSchemaValidation (Argo CD), in parameters\n"
	f.add("Values of charts are not checked", message+wording.Lines(lines, wording.Named))
}

type namesSet map[string]bool

type namesBy map[string]namesSet

func (n namesBy) add(key, name string) {
	if n[key] == nil {
		n[key] = namesSet{}
	}
	n[key][name] = true
}

func (n namesSet) count(one, many string) string {
	const shown = 3
	names := wording.Quoted(slices.Sorted(maps.Keys(n)))
	return fmt.Sprintf("%s (%s)", wording.Count(len(names), one, many), wording.List(names, shown))
}

// addMissing reports APIs that charts asked for and a cluster type could list. It needs a rendering by Render.
func (f *diagnostics) addMissing(r *Rendering) {
	charts, clusterTypes := namesBy{}, namesBy{}
	for i := range r.folders {
		missing := &r.folders[i].missing
		for _, api := range missing.apis {
			if !fleet.IsAPIVersion(api) {
				continue
			}
			charts.add(api, missing.chart)
			clusterTypes.add(api, r.Schedule.Assignments[i].Host.ClusterType.Name)
		}
	}
	if len(charts) == 0 {
		return
	}
	var lines []string
	for _, api := range slices.Sorted(maps.Keys(charts)) {
		lines = append(lines, fmt.Sprintf("%s: %s, %s", api,
			charts[api].count("chart", "charts"), clusterTypes[api].count("cluster type", "cluster types")))
	}
	const message = "these charts were rendered without APIs that they ask for, and may render something else on clusters that have them: " +
		"if clusters have one of these APIs, list it in api_versions of the cluster type\n"
	f.add("Charts ask for APIs that are not listed", message+wording.Lines(lines, wording.Named))
}
