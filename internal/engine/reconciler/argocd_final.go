package reconciler

import (
	"encoding/json"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

var applicationFinal = &Final{
	Path: "source.path", Repository: "source.repoURL", Branch: "source.targetRevision",
	Applied: func(l *Listing, a *ListedObject) Applied { return applicationApplied(l, a, 0, false) },
	Drops: func(spec map[string]any) bool {
		policy, _ := spec["syncPolicy"].(map[string]any)
		options, _ := policy["syncOptions"].([]any)
		return slices.Contains(options, any("Validate=false"))
	},
	Request: func(object map[string]any, into *objects.Request) []string {
		name := readFields(object, "metadata").text("name")
		f := readFields(object, "spec")
		f.refuse("source.plugin", "a plugin is a program of the agent")
		into.Namespace = f.text("destination.namespace")
		into.Hooks = argocdHooks
		into.Overrides = []string{".argocd-source.yaml", ".argocd-source-" + parameter.ReplaceAllString(name, "*") + ".yaml"}
		helm, kustomize, directory := f.object("source.helm"), f.object("source.kustomize"), f.object("source.directory")
		// Argo CD detects the tool from the folder unless the source names one.
		isFound := helm == nil && kustomize == nil && directory == nil
		if helm != nil || isFound {
			into.Helm = f.helm(into, name)
		}
		if kustomize != nil || isFound {
			into.Kustomize = f.kustomize()
		}
		if directory != nil || isFound {
			f.refuse("source.directory.jsonnet", "Jsonnet is not rendered")
			into.Directory = &objects.Directory{
				Recurse: f.flag("source.directory.recurse"), Include: f.text("source.directory.include"), Exclude: f.text("source.directory.exclude"),
			}
		}
		return f.problems
	},
	Follow: func(at Place) []Edit {
		return []Edit{
			{"source.repoURL", at.Repository}, {"source.targetRevision", at.Branch}, {"source.path", at.Path},
			{"source.chart", nil}, {"source.helm", nil}, {"source.directory", nil},
			{"source.kustomize", map[string]any{"images": []any{digestName + ":" + at.Digest}}},
		}
	},
}

// argocdHooks excludes Helm's tests and rollback hooks, which Argo CD does not run.
var argocdHooks = &objects.Hooks{
	Helm: []string{"pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-delete", "post-delete"},
	Own:  "argocd.argoproj.io/hook", OwnSkip: "Skip",
	OwnEvents: []string{"PreSync", "Sync", "PostSync", "SyncFail", "PreDelete", "PostDelete"},
}

func (f *fields) helm(into *objects.Request, application string) *objects.Helm {
	f.allowOnly(
		"source.helm", "releaseName", "namespace", "values", "valuesObject", "valueFiles", "ignoreMissingValueFiles", "parameters",
		"fileParameters", "skipCrds", "skipTests", "skipSchemaValidation", "kubeVersion", "apiVersions", "passCredentials",
		"version",
	)
	f.refuse("source.helm.fileParameters", "files are not read as values; use parameters or valuesObject")
	version, apis := f.versions("source.helm")
	if version == "" { // Argo CD passes only the numbers of the cluster's version
		version, _, _ = strings.Cut(strings.ReplaceAll(into.KubernetesVersion, "-", "+"), "+")
	}
	helm := &objects.Helm{
		KubernetesVersion: version, APIVersions: apis,
		ReleaseName: f.text("source.helm.releaseName"), Namespace: into.Namespace, Values: f.object("source.helm.valuesObject"),
		ValueFiles: f.texts("source.helm.valueFiles"), IgnoreMissingValueFiles: f.flag("source.helm.ignoreMissingValueFiles"),
		SkipCRDs: f.flag("source.helm.skipCrds"), SkipTests: f.flag("source.helm.skipTests"),
		SkipSchema: f.flag("source.helm.skipSchemaValidation"),
	}
	if helm.ReleaseName == "" {
		helm.ReleaseName = application
	}
	if text := f.text("source.helm.values"); text != "" && helm.Values == nil { // otherwise Argo CD ignores it
		err := yaml.Unmarshal([]byte(text), &helm.Values, func(decoder *json.Decoder) *json.Decoder {
			decoder.UseNumber()
			return decoder
		})
		if err != nil {
			f.report("source.helm.values", "is not YAML of an object")
		}
	}
	f.each("source.helm.parameters", func(one *fields) {
		parameter := objects.Parameter{Name: one.text("name"), Value: one.text("value"), IsText: one.flag("forceString")}
		helm.Parameters = append(helm.Parameters, parameter)
	})
	return helm
}

func (f *fields) kustomize() *objects.Kustomize {
	f.allowOnly("source.kustomize", "namePrefix", "nameSuffix", "images", "replicas", "patches", "components",
		"commonLabels", "commonAnnotations", "labelWithoutSelector", "labelIncludeTemplates", "kubeVersion", "apiVersions",
		"commonAnnotationsEnvsubst", "forceCommonLabels", "forceCommonAnnotations", "ignoreMissingComponents", "version")
	f.refuse("source.kustomize.version", "Flotilla has its own version of kustomize")
	f.refuse("source.kustomize.commonAnnotationsEnvsubst", "its variables are known to the agent alone")
	f.refuse("source.kustomize.ignoreMissingComponents", "which components are missing is not known")
	_, _ = f.versions("source.kustomize") // for charts in kustomizations, which are not rendered
	kustomize := &objects.Kustomize{
		NamePrefix: f.text("source.kustomize.namePrefix"), NameSuffix: f.text("source.kustomize.nameSuffix"),
		Patches: f.patches("source.kustomize.patches"), Components: f.texts("source.kustomize.components"),
		CommonLabels: f.textMap("source.kustomize.commonLabels"), CommonAnnotations: f.textMap("source.kustomize.commonAnnotations"),
		LabelsWithoutSelector:  f.flag("source.kustomize.labelWithoutSelector"),
		LabelsIncludeTemplates: f.flag("source.kustomize.labelIncludeTemplates"),
	}
	for _, text := range f.texts("source.kustomize.images") {
		kustomize.Images = append(kustomize.Images, imageOf(text))
	}
	f.each("source.kustomize.replicas", func(one *fields) {
		kustomize.Replicas = append(kustomize.Replicas, objects.Replicas{Name: one.text("name"), Count: one.count("count")})
	})
	return kustomize
}

// versions returns the Kubernetes version and APIs that a source sets instead of the cluster's.
func (f *fields) versions(path string) (kubernetes string, apis []string) {
	apis = f.texts(path + ".apiVersions")
	slices.Sort(apis)
	return f.text(path + ".kubeVersion"), slices.Compact(apis)
}

// imageOf parses an image as `kustomize edit set image` does: "<name>=<new name>:<tag>@<digest>". Only one name is
// required.
func imageOf(text string) objects.Image {
	name, rest, renames := strings.Cut(text, "=")
	if !renames {
		rest = text
	}
	rest, digest, _ := strings.Cut(rest, "@")
	tag := ""
	if at := strings.LastIndexByte(rest, ':'); at > strings.LastIndexByte(rest, '/') {
		rest, tag = rest[:at], rest[at+1:]
	}
	image := objects.Image{Name: rest, NewTag: tag, Digest: digest}
	if renames {
		image.Name = name
		if rest != name {
			image.NewName = rest
		}
	}
	if image.Digest != "" {
		image.NewTag = "" // kustomize accepts only one of them
	}
	return image
}
