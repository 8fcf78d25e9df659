package pipeline

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

type exposure struct {
	clause string // object and place, without the value
	name   string // in allow_plain
}

// exposedIn returns the exposures that neither the deployment target nor the object allows. [render.Templates.Follow]
// refuses plain Secrets. Equal objects are read once.
func (r *Computation) exposedIn(subject render.Subject, final []objects.FinalObject) (exposed []exposure) {
	for i := range final {
		o := &final[i]
		key := sha256.Sum256(o.YAML)
		known, isKnown := r.exposures.Load(key)
		if !isKnown {
			known = exposedBy(o)
			r.exposures.Store(key, known)
		}
		found := known.([]exposure)
		if len(found) == 0 {
			continue
		}
		if allowed := r.Templates.PlainTexts(subject); len(allowed) > 0 {
			found = exposedBy(o, allowed...)
		}
		for _, e := range found {
			if !slices.Contains(subject.Assignment.Target.Target.Manifests.AllowPlain, e.name) {
				exposed = append(exposed, e)
			}
		}
	}
	return exposed
}

func exposedBy(o *objects.FinalObject, known ...string) (exposed []exposure) {
	if text := string(o.YAML); o.Kind == objects.SealedSecret || !credential.MayHave(text) {
		return nil
	}
	documents, err := fleet.ReadObjects(string(o.YAML))
	if err != nil || len(documents) != 1 || secret.IsSecret(documents[0]) {
		return nil // invalid objects are reported elsewhere
	}
	allowed := annotatedPlain(documents[0])
	for _, found := range credential.Find(documents[0], known...) {
		if slices.Contains(allowed, found.Path) || isProse(o, &found) {
			continue
		}
		where := found.Path
		if found.Line > 0 {
			where += fmt.Sprintf(", line %d,", found.Line)
		}
		clause := fmt.Sprintf("%s %q: %s looks like a credential (rule %s)", o.Kind, o.Name, where, found.Rule)
		exposed = append(exposed, exposure{clause, o.Kind + "." + found.Path})
	}
	return exposed
}

// isProse reports whether a finding is in the description of a CRD's field, such as `automountServiceAccountToken:
// true`.
func isProse(o *objects.FinalObject, found *credential.Match) bool {
	return o.Kind == "CustomResourceDefinition" && found.Rule == "password" && strings.HasSuffix(found.Path, ".description")
}

func annotatedPlain(object map[string]any) (paths []string) {
	metadata, _ := object["metadata"].(map[string]any)
	annotations, _ := metadata["annotations"].(map[string]any)
	text, _ := annotations[fleet.AllowPlainAnnotation].(string)
	for path := range strings.SplitSeq(text, ",") {
		paths = append(paths, strings.TrimSpace(path))
	}
	return paths
}

func remedy(name string) string {
	return fmt.Sprintf("take it from a Secret; if it is none, add allow_plain = [%q] to the deployment target", name)
}

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

// Definitions holds CustomResourceDefinitions of clusters.
type Definitions struct {
	All []*kinds.Definition
	Sum string // fingerprint of All
}

type schemaCheck struct {
	refused, dropped []string // clauses about rejected parts, and about fields that clusters may drop
	// undefined holds objects whose kind is neither built in nor among definitions, the assignment's own CRDs.
	undefined, definitions []objects.FinalObject
}

func (r *Computation) checkSchemas(subject render.Subject, result *objects.Rendering) (check schemaCheck) {
	drops := r.Templates.DropsFields(subject.Assignment)
	for _, violation := range result.Violations {
		check.add(&result.Objects[violation.Object], violation.Message, violation.IsUnknown && (violation.IsNewer || drops))
	}
	for _, i := range result.Undefined {
		check.undefined = append(check.undefined, result.Objects[i])
	}
	for i := range result.Objects {
		if o := &result.Objects[i]; o.Group == "apiextensions.k8s.io" && o.Kind == "CustomResourceDefinition" {
			check.definitions = append(check.definitions, *o)
		}
	}
	return check
}

func (s *schemaCheck) add(o *objects.FinalObject, message string, mayDrop bool) {
	if strings.Contains(o.Hook, "test") {
		return // not applied by agents
	}
	clause := fmt.Sprintf("%s %q: %s", o.Kind, o.Name, message)
	if mayDrop {
		s.dropped = append(s.dropped, clause)
		return
	}
	s.refused = append(s.refused, clause)
}

// checkUndefined validates objects whose kinds are defined by other assignments of the host, the provider or published
// schemas.
func (r *Rendering) checkUndefined() {
	if !slices.ContainsFunc(r.folders, func(of renderedFolder) bool { return len(of.schemas.undefined) > 0 }) {
		return
	}
	definitions := map[string][]*kinds.Definition{} // by host
	for i := range r.folders {
		host, found := r.Schedule.Assignments[i].Host.Name, r.folders[i].schemas.definitions
		for j := range found {
			read, err := fleet.ReadObjects(string(found[j].YAML))
			if err != nil || len(read) != 1 {
				continue // reported elsewhere
			}
			if definition, err := kinds.ReadDefinition(read[0]); err == nil { // Validation of the object reports an invalid definition.
				definitions[host] = append(definitions[host], definition)
			}
		}
	}
	parallel.Each(len(r.folders), func(i int) {
		check := &r.folders[i].schemas
		if len(check.undefined) == 0 {
			return
		}
		assignment := r.Schedule.Assignments[i]
		catalog, err := kinds.For(assignment.Host.ClusterType.KubernetesVersion)
		if err != nil {
			return // reported by the templates
		}
		catalog = catalog.With(r.Definitions.All...).
			With(definitions[assignment.Host.ClusterType.Name]...).
			With(definitions[assignment.Host.Name]...)
		drops := r.Templates.DropsFields(assignment)
		for j := range check.undefined {
			o := &check.undefined[j]
			read, err := fleet.ReadObjects(string(o.YAML))
			if err != nil || len(read) != 1 {
				continue // reported elsewhere
			}
			for _, violation := range catalog.Check(read[0]) {
				mayDrop := violation.IsUnknown && (drops || catalog.MayLackFields(read[0]))
				check.add(o, violation.In(catalog, read[0]), mayDrop)
			}
		}
		check.undefined = nil
	})
}

// refusedIn returns the rejected parts of the objects in a folder if it is deployed, or if it is not.
func (r *Rendering) refusedIn(i int, isDeployed bool) []string {
	if r.isDeployed(i) != isDeployed {
		return nil
	}
	return r.folders[i].schemas.refused
}
