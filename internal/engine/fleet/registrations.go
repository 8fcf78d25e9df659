package fleet

import (
	"cmp"
	"fmt"
	"net/url"
	"path"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

// Registration is a WorkloadRegistration of Kalypso.
type Registration struct {
	Name      string
	Labels    Labels
	Workspace string // may be empty
	Source    Source
	// Sources are of the workspace; nil allows any.
	Sources      []string
	SourcesKnown bool
}

// Source is a folder of a repository at a ref.
type Source struct {
	URL  string
	Ref  string // refs/heads/<name> for a branch
	Path string
}

// RegistrationOptionsTable is of provider::flotilla::registrations.
var RegistrationOptionsTable = &Table{
	Name:    "options of registrations",
	Meaning: "The options of `provider::flotilla::registrations`.",
	Attributes: []Attribute{
		{Name: "workspaces", Type: CollectionType, Of: &workspaceKind.Table, Meaning: "Workspaces, as `provider::flotilla::fleet` takes them. " +
			"A registration that leads outside of the `sources` of its workspace is an error, and so is one of another workspace. " +
			"Unset: registrations may lead anywhere."},
		{Name: "followed", Type: AnyType, Meaning: "Registrations that were followed before: results of this function, " +
			"objects with `url`, `ref` and `path`, or lists and maps of them."},
	},
}

// DecodeRegistrations decodes the WorkloadRegistrations among YAML texts, by name. It leaves out options.followed, so that
// cycles end. known is false while some may be unknown. With options.workspaces, a source outside of its workspace's
// sources is an error.
func DecodeRegistrations(documents, options any) (registrations map[string]Registration, known bool, findings Findings) {
	p := &registrationReader{
		controlPlane: &controlPlane{decoder: newDecoder()},
		found:        map[string]Registration{}, locations: map[Source]*Path{}, before: map[Source]bool{},
	}
	p.readOptions(options)
	p.eachDocument((*Path)(nil).Attribute("documents"), documents, p.read)
	return p.found, !p.pendingTexts, p.allFindings()
}

func (s Source) location() Source {
	at := strings.TrimSuffix(strings.TrimRight(s.URL, "/"), ".git")
	if parsed, err := url.Parse(at); err == nil && parsed.Scheme != "" && parsed.Host != "" {
		parsed.Scheme, parsed.Host = strings.ToLower(parsed.Scheme), strings.ToLower(parsed.Host)
		at = parsed.String()
	}
	folder := strings.TrimPrefix(path.Clean("/"+s.Path), "/")
	return Source{URL: at, Ref: strings.TrimPrefix(s.Ref, "refs/heads/"), Path: folder}
}

type registrationReader struct {
	*controlPlane
	bounds    sourceBounds
	found     map[string]Registration
	locations map[Source]*Path
	before    map[Source]bool // followed
}

func (p *registrationReader) readOptions(options any) {
	at := (*Path)(nil).Attribute("options")
	if options == nil {
		return
	}
	o, isUnknown := p.object(RegistrationOptionsTable, at, options)
	if o == nil {
		p.pendingTexts = p.pendingTexts || isUnknown
		return
	}
	p.bounds = readSourceBounds(p.decoder, o)
	followed, _ := o.Value("followed")
	o.Finish()
	p.follow(at.Attribute("followed"), followed, 0)
}

func (p *registrationReader) read(at *Path, document Document) {
	fields, _ := document.Value.(map[string]any)
	apiVersion, _ := fields["apiVersion"].(string)
	group, _, _ := strings.Cut(apiVersion, "/")
	if group != kalypsoGroup || fields["kind"] != "WorkloadRegistration" {
		return
	}
	o, _ := p.object(nil, at, document.Value)
	step := fmt.Sprintf(" document %d (line %d, WorkloadRegistration %.80q)", document.Number, document.Line, documentName(o))
	o.path = &Path{parent: at, step: step}
	readText(o, "apiVersion")
	readText(o, "kind")
	p.addRegistration(o)
}

func (p *registrationReader) addRegistration(o *ObjectReader) {
	registration := Registration{}
	registration.Name, registration.Labels = readMetadata(o, CheckLabelName)
	readSpec(o, func(s *ObjectReader) {
		s.Require("workload", "is required: {repo, branch, path}")
		registration.Source = ReadObject(s, "workload", func(w *ObjectReader) Source {
			return Source{URL: readRequired(w, "repo"), Ref: readRequired(w, "branch"), Path: cmp.Or(readText(w, "path"), ".")}
		})
		registration.Workspace = readChecked(s, "workspace", CheckLabelName)
	})
	if registration.Source.Ref != "" {
		registration.Source.Ref = "refs/heads/" + strings.TrimPrefix(registration.Source.Ref, "refs/heads/")
	}
	p.registerAt(objectKey{"workload_registrations", registration.Name}, o.path, metadataName(o))
	p.checkSources(&registration, o.path.Attribute("spec"))
	location := registration.Source.location()
	if p.before[location] {
		return
	}
	if other, ok := p.locations[location]; ok && location.URL != "" {
		p.Report(o.path.Attribute("spec").Attribute("workload"),
			"has the same repository, ref and path as %s: the files would be read twice; remove one of them", other)
		return
	}
	p.locations[location] = o.path
	p.found[registration.Name] = registration
}

// checkSources sets the allowed sources and checks the own one. at is the path of the spec.
func (p *registrationReader) checkSources(registration *Registration, at *Path) {
	sources, ok := p.bounds.sources[registration.Workspace]
	registration.Sources, registration.SourcesKnown = sources, !p.bounds.isSet || ok && !p.bounds.pending[registration.Workspace]
	switch {
	case !p.bounds.isSet:
	case !ok && !p.bounds.complete:
		return // its name may be unknown
	case registration.Workspace == "":
		p.Report(at.Attribute("workspace"), "is required: the sources of the workspace say where the registration may lead")
		return
	case !ok:
		p.Report(at.Attribute("workspace"), "%s", p.bounds.describeMissing(registration.Workspace))
		return
	}
	repo := at.Attribute("workload").Attribute("repo")
	if registration.Source.URL == "" || !registration.SourcesKnown {
		return
	}
	if _, err := access.Parse(registration.Source.URL); err != nil {
		p.Report(repo, "%s", err) // the error hides credentials
	} else if _, err := access.Decide(access.Request{URL: registration.Source.URL, Sources: sources}, nil); err != nil {
		p.Report(repo, "leads to %q for workspace %q, and is %s", registration.Source.URL, registration.Workspace, err)
	}
}

const maxFollowedDepth = 4

func (p *registrationReader) follow(at *Path, value any, depth int) {
	source, _ := value.(map[string]any)
	if _, isSource := source["url"].(string); isSource || source["url"] == (Unknown{}) {
		text := func(key string) string {
			p.pendingTexts = p.pendingTexts || source[key] == Unknown{}
			text, _ := source[key].(string)
			return text
		}
		p.before[Source{URL: text("url"), Ref: text("ref"), Path: text("path")}.location()] = true
		return
	}
	elements, are := Elements(at, value)
	switch {
	case value == nil:
	case value == Unknown{}:
		p.pendingTexts = true
	case !are:
		p.Report(at, "must be what provider::flotilla::registrations returned, or objects with url, ref and path, not %s", kindOf(value))
	case depth > maxFollowedDepth:
		p.Report(at, "must be what provider::flotilla::registrations returned, or objects with url, ref and path")
	default:
		for _, element := range elements {
			p.follow(element.Path, element.Value, depth+1)
		}
	}
}
