package fleet

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

const kalypsoGroup = "scheduler.kalypso.io"

// DecodeControlPlane decodes documents with Kalypso's kinds and the JSON models. The fleet merges values as Kalypso
// does.
func DecodeControlPlane(environment, documents any) (*Decoded, Findings) {
	d := newDecoder()
	root := &ObjectReader{reader: &d.Reader, fields: map[string]any{"environment": environment}}
	readEnvironment(d, root)
	d.Fleet.Hydration = &Hydration{Precedence: "name", Lists: "merge"}

	plane := &controlPlane{decoder: d, readers: documentReaders(), registrations: map[string]string{}, registered: map[string]*registered{}}
	for _, text := range plane.textsOf((*Path)(nil).Attribute("documents"), documents) {
		if followed, ok := text.Value.(map[string]any); ok {
			plane.readFollowed(text.Path, followed)
			continue
		}
		for _, document := range plane.parseText(text.Path, text.Value) {
			plane.readDocument(text.Path, document)
		}
	}
	plane.finish()
	return d.result()
}

type controlPlane struct {
	*decoder
	readers       map[string]func(*controlPlane, *ObjectReader) // by "<group>/<kind>"
	registrations map[string]string                             // workload → workspace
	needsDefault  bool
	appConfigs    []appConfig

	// following is nil for documents of the control plane itself.
	following    *registered
	registered   map[string]*registered // by workload
	pendingTexts bool
}

type registered struct {
	name string
	path *Path
}

func (p *controlPlane) textsOf(path *Path, documents any) []Element {
	texts, are := Elements(path, documents)
	switch {
	case documents == Unknown{}:
		p.pendingTexts = true
		p.noteUnknownObjects()
	case !are:
		p.Report(path, "must be a list or map of YAML texts, not %s", kindOf(documents))
	}
	return texts
}

func (p *controlPlane) readFollowed(path *Path, fields map[string]any) {
	o, _ := p.object(nil, path, fields)
	of := &registered{name: readName(o, CheckLabelName), path: path.Attribute("name")}
	if of.name == unknownText {
		p.noteUnknownObjects() // the workspace of its workloads is unknown
	}
	documents, _ := o.Value("documents")
	o.Finish()
	p.following = of
	defer func() { p.following = nil }()
	if documents == nil {
		o.Report("documents", "is required: a list or map of YAML texts")
		return
	}
	p.eachDocument(path.Attribute("documents"), documents, p.readDocument)
}

func (p *controlPlane) eachDocument(path *Path, documents any, read func(path *Path, document Document)) {
	for _, text := range p.textsOf(path, documents) {
		for _, document := range p.parseText(text.Path, text.Value) {
			read(text.Path, document)
		}
	}
}

func (p *controlPlane) parseText(path *Path, value any) []Document {
	switch text := value.(type) {
	case Unknown:
		p.pendingTexts = true
		p.noteUnknownObjects()
	case string:
		documents, problems := readDocuments(text, unmarshalAsKustomize, "")
		for _, problem := range problems {
			p.Report(path, "%s", problem)
		}
		return documents
	default:
		p.Report(path, "must be the text of YAML documents, not %s", kindOf(value))
	}
	return nil
}

func (p *controlPlane) readDocument(path *Path, document Document) {
	step := fmt.Sprintf(" document %d (line %d)", document.Number, document.Line)
	o, _ := p.object(nil, &Path{parent: path, step: step}, document.Value)
	if o == nil {
		return
	}
	apiVersion, kind := readText(o, "apiVersion"), readText(o, "kind")
	if _, isList := o.fields["items"].([]any); isList && apiVersion == "" && kind == "" {
		readModelList(p, o)
		return
	}
	if apiVersion == "" && kind == "" {
		kind = modelKind(o.fields)
	}
	if kind != "" {
		step = fmt.Sprintf(" document %d (line %d, %.80s %.80q)", document.Number, document.Line, kind, documentName(o))
		o.path = &Path{parent: path, step: step}
	}
	group, _, _ := strings.Cut(apiVersion, "/")
	read, isKnown := p.readers[group+"/"+kind]
	switch {
	case kind == "":
		p.Report(o.path, "has no kind, nor an attribute that only one of Application, Cluster, Namespace and TargetPolicy has")
	case read != nil:
		read(p, o)
	case isKnown:
	case apiVersion == "":
		p.Report(o.path, "kind %s is not allowed in a control plane; without apiVersion the kinds are "+
			"Application, Cluster, Namespace and TargetPolicy", kind)
	default:
		p.Report(o.path, "kind %s of %s is not allowed in a control plane; the kinds are Kalypso's (%s), and ConfigMap",
			kind, apiVersion, kalypsoGroup)
	}
}

// documentReaders returns the readers by "<group>/<kind>". A nil reader skips the document.
func documentReaders() map[string]func(*controlPlane, *ObjectReader) {
	return map[string]func(*controlPlane, *ObjectReader){
		kalypsoGroup + "/ClusterType":          readKalypsoClusterType,
		kalypsoGroup + "/Workload":             readKalypsoWorkload,
		kalypsoGroup + "/WorkloadRegistration": readKalypsoRegistration,
		kalypsoGroup + "/SchedulingPolicy":     readKalypsoPolicy,
		kalypsoGroup + "/Template":             readKalypsoTemplate,
		kalypsoGroup + "/ConfigSchema":         readKalypsoSchema,
		kalypsoGroup + "/Environment":          nil, // see flotilla_environment
		kalypsoGroup + "/GitOpsRepo":           nil,
		kalypsoGroup + "/BaseRepo":             nil, // already read
		"v1/ConfigMap":                         readConfigMap,
		"/Application":                         readModelApplication,
		"/Cluster":                             readModelCluster,
		"/Namespace":                           readModelNamespace,
		"/TargetPolicy":                        readModelPolicy,
	}
}

func documentName(o *ObjectReader) string {
	if metadata, ok := o.fields["metadata"].(map[string]any); ok {
		if name, ok := metadata["name"].(string); ok {
			return name
		}
	}
	name, _ := o.fields["name"].(string)
	return name
}

func readMetadata(o *ObjectReader, check func(string) string) (name string, labels Labels) {
	o.Require("metadata", "is required")
	if m := o.Object("metadata"); m != nil {
		name = readName(m, check)
		labels = readLabels(m, "labels")
	}
	return name, labels
}

func readSpec(o *ObjectReader, decode func(*ObjectReader)) {
	o.Require("spec", "is required")
	if s := o.Object("spec"); s != nil {
		decode(s)
		s.Finish()
	}
	o.Finish("status")
}

func metadataName(o *ObjectReader) *Path {
	return o.path.Attribute("metadata").Attribute("name")
}

// appConfigPrefix begins ConfigMaps of Azure App Configuration's provider, which writes labels into keys.
const appConfigPrefix = "azure-app-config"

// readConfigMap makes one config container, or several if keys contain labels.
func readConfigMap(p *controlPlane, o *ObjectReader) {
	metadata, _ := o.fields["metadata"].(map[string]any)
	labels, _ := metadata["labels"].(map[string]any)
	platform := fmt.Sprint(labels["platform-config"])
	name, _ := metadata["name"].(string)
	if platform != "true" && !strings.HasPrefix(name, appConfigPrefix) {
		return
	}
	name, own := readMetadata(o, CheckSubdomainName)
	data := map[string]any{}
	if values := o.Object("data"); values != nil {
		for _, key := range slices.Sorted(maps.Keys(values.fields)) {
			text, ok := values.fields[key].(string)
			if !ok {
				p.Report(values.path.Key(key), "must be a string, not %s: put it in quotes", kindOf(values.fields[key]))
			}
			if err := checkConfigMapValue(text); err != nil {
				p.Report(values.path.Key(key), "%s", err)
			}
			data[key] = text
		}
		p.checkPlain(values.path, "", data, readAllowPlainAnnotation(o), valueAdvice+"add %q to its annotation "+AllowPlainAnnotation)
	}
	p.registerAt(objectKey{"config_containers", name}, o.path, metadataName(o))
	if platform == "true" {
		p.addContainer(o, ConfigContainer{Name: name, Labels: WithoutOwnerLabels(own)}, data)
	}
	if strings.HasPrefix(name, appConfigPrefix) {
		p.appConfigs = append(p.appConfigs, appConfig{o, name, data})
	}
}

func (p *controlPlane) addContainer(o *ObjectReader, container ConfigContainer, data map[string]any) {
	container.FromConfigMap = true
	p.Fleet.ConfigContainers = append(p.Fleet.ConfigContainers, container)
	storeData(p.decoder, o.path.Attribute("data"), container.Name, data)
}

// appConfig has keys "<label>.<value>.<label>.<value>.<key>".
type appConfig struct {
	*ObjectReader
	name string
	data map[string]any
}

// readAppConfigs creates a container for each set of labels. Its priority exceeds that of ConfigMaps; then the later
// name wins, then the longer labels.
func (p *controlPlane) readAppConfigs() {
	slices.SortFunc(p.appConfigs, func(a, b appConfig) int { return cmp.Compare(a.name, b.name) })
	for i, config := range p.appConfigs {
		byLabels := map[string]map[string]any{}
		for key, value := range config.data {
			at := strings.LastIndex(key, ".")
			labels, key := key[:max(at, 0)], key[at+1:]
			if byLabels[labels] == nil {
				byLabels[labels] = map[string]any{}
			}
			byLabels[labels][key] = value
		}
		for _, text := range slices.Sorted(maps.Keys(byLabels)) {
			labels, problem := labelsOf(text)
			if problem != "" {
				p.Report(config.path.Attribute("data"), "labels %q of a key: %s", text, problem)
			}
			p.addContainer(config.ObjectReader, ConfigContainer{
				Name: config.name + "/" + cmp.Or(text, "*"), Labels: WithoutOwnerLabels(labels),
				Priority: json.Number(strconv.Itoa(1 + i*(maxConfigMapKey+1) + len(text))),
			}, byLabels[text])
		}
	}
}

const maxConfigMapKey = 253

func labelsOf(text string) (labels Labels, problem string) {
	labels = Labels{}
	parts := strings.Split(text, ".")
	for i := 1; i < len(parts); i += 2 {
		labels[parts[i-1]] = parts[i]
		problem = cmp.Or(problem, CheckLabelKey(parts[i-1]), CheckLabelValue(parts[i]))
	}
	return labels, problem
}

// WithoutOwnerLabels returns labels without those that the applying tool set.
func WithoutOwnerLabels(labels Labels) Labels {
	kept := maps.Clone(labels)
	delete(kept, "platform-config")
	delete(kept, reconciler.AppliedByFlux)
	delete(kept, strings.TrimSuffix(reconciler.AppliedByFlux, "name")+"namespace")
	if len(kept) == 0 {
		return nil
	}
	return kept
}

func (p *controlPlane) finish() {
	p.readAppConfigs()
	p.checkRegistered()
	declared := namesOf(p.Fleet.Workspaces, func(w Workspace) string { return w.Name })
	declare := func(name string) {
		if name != "" && name != unknownText && !slices.Contains(declared, name) {
			declared = append(declared, name)
			p.Fleet.Workspaces = append(p.Fleet.Workspaces, Workspace{Name: name})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.registrations)) {
		declare(p.registrations[name])
	}
	for i := range p.Fleet.Workloads {
		workload := &p.Fleet.Workloads[i]
		if workload.Workspace == "" {
			workload.Workspace = p.workspaceOf(workload)
		}
		declare(workload.Workspace)
	}
	for _, policy := range p.Fleet.TargetPolicies {
		declare(policy.Workspace)
	}
	types := namesOf(p.Fleet.ClusterTypes, func(c ClusterType) string { return c.Name })
	if p.needsDefault && !slices.Contains(types, "default") {
		p.Fleet.ClusterTypes = append(p.Fleet.ClusterTypes, ClusterType{
			Name: "default", Reconciler: DefaultReconciler,
			NamespaceService: DefaultNamespaceService, ConfigType: DefaultConfigType,
		})
	}
}

func (p *controlPlane) checkRegistered() {
	if p.pendingTexts {
		return
	}
	seen := map[string]bool{}
	for _, workload := range slices.Sorted(maps.Keys(p.registered)) {
		of := p.registered[workload]
		if _, ok := p.registrations[of.name]; !ok && !seen[of.name] && isSet(of.name) {
			seen[of.name] = true
			p.Report(of.path, "none of the documents is a WorkloadRegistration %q%s",
				of.name, DidYouMean(of.name, slices.Sorted(maps.Keys(p.registrations))))
		}
	}
}

func (p *controlPlane) workspaceOf(workload *Workload) string {
	if of := p.registered[workload.Name]; of != nil {
		if workspace := p.registrations[of.name]; workspace != "" {
			return workspace
		}
	}
	owner := workload.Labels[reconciler.AppliedByFlux] // in Kalypso "<environment>-<registration>"
	for _, name := range []string{workload.Name, owner, strings.TrimPrefix(owner, p.Fleet.Environment+"-")} {
		if workspace := p.registrations[name]; workspace != "" {
			return workspace
		}
	}
	return workload.Labels["workspace"]
}
