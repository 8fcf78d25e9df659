package render

import (
	"cmp"
	"embed"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"text/template"
	"text/template/parse"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/kinds"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
)

// Templates renders and checks the folders of a fleet.
type Templates struct {
	fleetIndex
	problems map[string]*targetProblems // by full name of the deployment target
	shapes   shapeCache
	entries  boundedCache[secretEntryKey, secretEntry]
	roles    map[*schedule.Assignment]*assignmentRole
	runners  sync.Pool // of *runner
	objects  sync.Pool // of empty objectPositions
}

type compiledTemplate struct {
	kind, name  string
	file        string
	contentType string
	separator   string
	sources     []string
	manifests   []*template.Template
	mutates     bool // may change the maps of its data
	isBuiltin   bool
	hasShape    bool // of a user's template
}

var fileNames = map[string]string{
	"namespace":  "namespace",
	"config":     "platform-config",
	"secret":     "platform-secrets",
	"policy":     "policy",
	"reconciler": "reconciler",
}

var extensions = map[string]string{
	"yaml": ".yaml", "json": ".json", "env": ".env", "properties": ".properties", "sh": ".sh", "text": ".txt",
}

const policyTemplate = "default"

// maxSource bounds the text of a template, in bytes.
const maxSource = 1 << 20

// Compile parses each template once. A template of the fleet replaces the built-in one of the same type and name. With
// findings, there are no templates.
func Compile(f *fleet.Fleet) (*Templates, fleet.Findings) {
	compiler := newCompiler(f)
	hosts := make(map[string]*hostTemplates, len(f.ClusterTypes))
	for i := range f.ClusterTypes {
		clusterType := &f.ClusterTypes[i]
		path := fleet.PathOf("cluster_types", clusterType.Name)
		host := &hostTemplates{isBuiltin: true}
		var err error
		if host.catalog, err = kinds.For(clusterType.KubernetesVersion); err != nil {
			compiler.findings.Report(path.Attribute("kubernetes_version"), "%s", err)
			continue
		}
		for _, use := range []struct{ kind, name, attribute string }{ // in the order of file names
			{"namespace", cmp.Or(clusterType.NamespaceService, fleet.DefaultNamespaceService), "namespace_service"},
			{"config", cmp.Or(clusterType.ConfigType, fleet.DefaultConfigType), "config_type"},
			{"secret", clusterType.SecretService, "secret_service"},
			{"policy", policyTemplate, ""},
			{"reconciler", cmp.Or(clusterType.Reconciler, fleet.DefaultReconciler), "reconciler"},
		} {
			if use.name == "" {
				continue
			}
			template, found := compiler.compile(use.kind, use.name)
			if !found {
				compiler.findings.Report(path.Attribute(use.attribute), "no template of type %s is called %q%s", use.kind, use.name,
					fleet.DidYouMean(use.name, compiler.templateNames(use.kind)))
				continue
			}
			host.templates = append(host.templates, template)
			host.isBuiltin = host.isBuiltin && template.isBuiltin
			if use.kind == "reconciler" && template.isBuiltin {
				host.reconciler = reconciler.Named(template.name)
			}
			if use.kind == "secret" {
				host.hasSecrets = true
				if template.isBuiltin {
					host.service = secretservice.Named(template.name)
				}
			}
			host.hasBuiltinConfig = host.hasBuiltinConfig || use.kind == "config" && template.isBuiltin
		}
		compiler.wrapConfig(host)
		compiler.readParameters(path.Attribute("parameters"), clusterType, host)
		compiler.readStores(path.Attribute("secret_stores"), clusterType, host)
		hosts[clusterType.Name] = host
	}
	compiler.checkProjects(f)
	if compiler.findings != nil {
		return nil, compiler.findings
	}
	templates := &Templates{fleetIndex: newFleetIndex(f, hosts)}
	templates.problems = templates.indexProblems(f)
	templates.runners.New = func() any { return newRunner() }
	templates.objects.New = func() any { return objectPositions{} }
	return templates, nil
}

// Validate parses one template. Paths of findings are relative to it.
func Validate(template *fleet.Template) fleet.Findings {
	_, findings := compileTemplate(template)
	for i := range findings {
		if _, path, ok := strings.Cut(findings[i].Path, "]."); ok {
			findings[i].Path = path
		}
	}
	return findings
}

type templateKey struct{ kind, name string }

type compiler struct {
	builtins map[templateKey]*fleet.Template
	sources  map[templateKey]*fleet.Template // of the fleet, over the built-in ones
	compiled map[templateKey]*compiledTemplate
	findings fleet.Findings
}

func newCompiler(f *fleet.Fleet) *compiler {
	compiler := &compiler{builtins: builtins(), compiled: map[templateKey]*compiledTemplate{}}
	compiler.sources = maps.Clone(compiler.builtins)
	for i := range f.Templates {
		compiler.sources[templateKey{f.Templates[i].Type, f.Templates[i].Name}] = &f.Templates[i]
	}
	return compiler
}

func (c *compiler) compile(kind, name string) (*compiledTemplate, bool) {
	key := templateKey{kind, name}
	if template, ok := c.compiled[key]; ok {
		return template, true
	}
	source, ok := c.sources[key]
	if !ok {
		return nil, false
	}
	if c.builtins[key] == source {
		return compileBuiltin(source), true
	}
	template, findings := compileTemplate(source)
	c.compiled[key] = template
	c.findings = append(c.findings, findings...)
	return template, true
}

// readParameters checks the parameters of a cluster type. A user's template accepts any.
func (c *compiler) readParameters(path *fleet.Path, clusterType *fleet.ClusterType, host *hostTemplates) {
	if len(clusterType.Parameters) == 0 {
		return
	}
	host.parameters = naturalObject(clusterType.Parameters)
	id, err := fleet.CanonicalJSON(clusterType.Parameters)
	if err != nil {
		c.findings.Report(path, "%s", err)
	}
	host.parametersID = id
	check := parameterChecker{path: path}
	if host.isBuiltin {
		check.checkNames(host.parameters, parametersFor(host.reconciler))
	}
	if host.reconciler != nil {
		check.checkDecided(host.parameters, newWorkspace(&fleet.Workspace{}))
	}
	c.findings = append(c.findings, check.findings...)
}

func (c *compiler) readStores(path *fleet.Path, clusterType *fleet.ClusterType, host *hostTemplates) {
	host.stores, host.storesID = clusterType.SecretStores, storesID(clusterType.SecretStores)
	if host.service == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(host.stores)) {
		for _, problem := range host.service.CheckStore(host.stores[name]) {
			at := path.Key(name)
			for _, attribute := range problem.Attribute {
				at = at.Attribute(attribute)
			}
			c.findings.Report(at, "%s", problem.Message)
		}
	}
}

// checkProjects reports Argo CD projects that are rendered for another workspace.
func (c *compiler) checkProjects(f *fleet.Fleet) {
	rendered := map[string]string{}
	for _, team := range f.Workspaces {
		if team.ArgocdProject != nil && team.ArgocdProject.Render && rendered[team.ArgocdProject.Name] == "" {
			rendered[team.ArgocdProject.Name] = team.Name
		}
	}
	for _, team := range f.Workspaces {
		if team.ArgocdProject == nil {
			continue
		}
		if owner := rendered[team.ArgocdProject.Name]; owner != "" && owner != team.Name {
			c.findings.Report(fleet.PathOf("workspaces", team.Name).Attribute("argocd_project"),
				"project %q is rendered for workspace %q, and allows only what belongs to that workspace: choose another name",
				team.ArgocdProject.Name, owner)
		}
	}
}

// wrapConfig writes configuration into a ConfigMap if the agent would ignore its file or read it as a manifest.
func (c *compiler) wrapConfig(host *hostTemplates) {
	if !host.reconciler.HasAgent() || !host.hasBuiltinConfig {
		return
	}
	for i, template := range host.templates {
		if template.kind == "config" && template.contentType != "yaml" {
			host.templates[i] = compileBuiltin(c.builtins[templateKey{wrappedConfig, template.name}])
		}
	}
}

func (c *compiler) templateNames(kind string) []string {
	var names []string
	for key := range c.sources {
		if key.kind == kind {
			names = append(names, key.name)
		}
	}
	slices.Sort(names)
	return names
}

func compileTemplate(source *fleet.Template) (*compiledTemplate, fleet.Findings) {
	contentType := cmp.Or(source.ContentType, "yaml")
	result := &compiledTemplate{
		kind: source.Type, name: source.Name,
		file:        fileNames[source.Type] + extensions[contentType],
		contentType: contentType,
		sources:     source.Manifests,
	}
	if contentType == "yaml" {
		result.separator = "---\n"
	}
	path := fleet.PathOf("templates", source.Name).Attribute("manifests")
	var findings fleet.Findings
	reads := map[string]bool{}
	for i, text := range source.Manifests {
		manifest, mutates, err := parseManifest(text, true, reads, nil)
		if err != nil {
			findings.Report(path.Index(i), "%s template%s", source.Type, result.failure(i, err).position())
			continue
		}
		result.manifests = append(result.manifests, manifest)
		result.mutates = result.mutates || mutates
	}
	result.hasShape = hasShape(result, reads)
	return result, findings
}

// manifestName names a manifest in messages of text/template.
const manifestName = "manifest"

// parseManifest parses a text and adds a [guard]. A [runner] adds its functions. isRoot: it runs with the data of an
// assignment; reads collects the fields that it reads.
func parseManifest(
	text string, isRoot bool, reads map[string]bool, more template.FuncMap,
) (parsed *template.Template, mutates bool, err error) {
	if len(text) > maxSource {
		return nil, false, problemf("is longer than %d MiB", maxSource>>20)
	}
	parsed, err = template.New(manifestName).Funcs(functions()).Funcs(more).Parse(text)
	if err != nil {
		return nil, false, err
	}
	for _, named := range parsed.Templates() {
		if named.Tree != nil {
			guard := &guard{tree: named.Tree, isRoot: isRoot && named.Name() == manifestName, reads: reads}
			guard.guardBody(named.Root)
			mutates = mutates || guard.mutates
		}
	}
	if mutates && isRoot { // again: changed maps need more guards
		parsed, _, err = parseManifest(text, false, reads, more)
		return parsed, true, err
	}
	if parsed.Tree == nil { // only definitions
		empty := &parse.Tree{Name: manifestName, ParseName: manifestName, Root: &parse.ListNode{NodeType: parse.NodeList}}
		parsed, err = parsed.AddParseTree(manifestName, empty)
	}
	return parsed, mutates, err
}

// builtinFiles has the built-in templates: templates/<type or wrappedConfig>/<name>.<extension of the content type>, one
// manifest each. Templates of reconcilers are in package reconciler.
//
//go:embed templates
var builtinFiles embed.FS

var builtins = sync.OnceValue(func() map[templateKey]*fleet.Template {
	contentTypes := map[string]string{}
	for contentType, extension := range extensions {
		contentTypes[extension] = contentType
	}
	templates := map[templateKey]*fleet.Template{}
	for _, name := range reconciler.Names() {
		templates[templateKey{"reconciler", name}] = &fleet.Template{
			Name: name, Type: "reconciler", ContentType: "yaml", Manifests: []string{reconciler.Named(name).Template()},
		}
	}
	files, _ := fs.Glob(builtinFiles, "templates/*/*") // only a malformed pattern is an error
	for _, file := range files {
		content, err := builtinFiles.ReadFile(file)
		if err != nil {
			panic(err) // embedded
		}
		kind, extension := path.Base(path.Dir(file)), path.Ext(file)
		key := templateKey{kind, strings.TrimSuffix(path.Base(file), extension)}
		if kind == wrappedConfig {
			kind = "config"
		}
		templates[key] = &fleet.Template{
			Name: key.name, Type: kind, ContentType: contentTypes[extension], Manifests: []string{string(content)},
		}
	}
	return templates
})

// compiledBuiltins has compiled templates of builtins, for all fleets, by source.
var compiledBuiltins sync.Map

func compileBuiltin(source *fleet.Template) *compiledTemplate {
	if compiled, isCompiled := compiledBuiltins.Load(source); isCompiled {
		return compiled.(*compiledTemplate)
	}
	template, findings := compileTemplate(source)
	if findings != nil {
		panic(findings)
	}
	template.isBuiltin = true
	compiledBuiltins.Store(source, template)
	return template
}

// wrappedConfig is the folder of templates that put configuration into a ConfigMap.
const wrappedConfig = "configmap"
