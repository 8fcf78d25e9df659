package renderer

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/provenance"
	"sigs.k8s.io/kustomize/api/provider"
	"sigs.k8s.io/kustomize/api/resmap"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// renderKustomize follows `kustomize build`.
func renderKustomize(t *tree, folder string, k *objects.Kustomize, into *collector) error {
	file, text, err := kustomizationText(t, folder, k)
	if err != nil {
		return err
	}
	hasSchema, err := scanKustomization(t, folder, file, text)
	if err != nil {
		return err
	}
	all, err := buildKustomization(t, file, text, k.Generate, hasSchema)
	if err != nil {
		return err
	}
	for _, resource := range all.Resources() {
		text, err := resource.MarshalJSON()
		if err != nil {
			return err
		}
		if err := into.addJSON(text, cmp.Or(folder, "."), "", objects.FromKustomization); err != nil {
			return err
		}
	}
	return nil
}

// kustomizationText returns the file unchanged if no setting changes it: kustomize distinguishes `resources: []` from missing
// resources.
func kustomizationText(t *tree, folder string, k *objects.Kustomize) (file string, text []byte, err error) {
	kustomization, file, err := readKustomization(t, folder, k)
	if err != nil {
		return "", nil, err
	}
	read, err := yaml.Marshal(kustomization)
	if err != nil {
		return "", nil, err
	}
	if err := applySettings(k, t, folder, kustomization); err != nil {
		return "", nil, err
	}
	if text, err = yaml.Marshal(kustomization); err != nil {
		return "", nil, err
	}
	if !k.Generate && bytes.Equal(text, read) {
		text, err = t.read(file)
	}
	return file, text, err
}

// readKustomization follows findOrGenerateKustomization in Flux's package kustomize.
func readKustomization(t *tree, folder string, k *objects.Kustomize) (*types.Kustomization, string, error) {
	kustomization := &types.Kustomization{TypeMeta: types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}}
	if file := kustomizationFile(t, folder); file != "" {
		content, err := t.read(file)
		if err != nil {
			return nil, "", err
		}
		read := kustomization.Unmarshal // refuses unknown fields, as `kustomize build` does
		if k.Generate {
			read = func(content []byte) error { return yaml.Unmarshal(content, kustomization) } // as Flux does
		}
		if err := read(content); err != nil {
			return nil, "", fmt.Errorf("%s: %w", file, err)
		}
		if k.Generate && len(kustomization.Resources) == 0 {
			kustomization.BuildMetadata = []string{types.OriginAnnotations}
		}
		return kustomization, file, nil
	}
	if !t.isFolder(folder) {
		return nil, "", fmt.Errorf("folder %q does not exist in it", folder)
	}
	if !k.Generate {
		return nil, "", fmt.Errorf("folder %q has no kustomization", folder)
	}
	resources, err := listManifests(t, folder)
	if err != nil {
		return nil, "", err
	}
	kustomization.Resources = resources
	if len(resources) == 0 {
		kustomization.Namespace = "_placeholder" // as Flux: an empty one is an error
	}
	return kustomization, path.Join(folder, konfig.DefaultKustomizationFileName()), nil
}

func kustomizationFile(t *tree, folder string) string {
	for _, name := range konfig.RecognizedKustomizationFileNames() {
		full := path.Join(folder, name)
		_, leads := t.outside[full]
		if _, has := t.files[full]; has || leads {
			return full
		}
	}
	return ""
}

// listManifests lists recursively: a subfolder with a kustomization instead of its manifests.
func listManifests(t *tree, folder string) ([]string, error) {
	factory := provider.NewDefaultDepProvider().GetResourceFactory()
	var resources []string
	taken := "" // the last listed subfolder
	for _, name := range t.filesBelow(folder) {
		full := path.Join(folder, name)
		if taken != "" && strings.HasPrefix(name, taken+"/") || passesLink(t.links, path.Dir(full)) {
			continue
		}
		if outer := outermostKustomization(t, folder, name); outer != "" {
			taken = outer
			resources = append(resources, "./"+outer)
			continue
		}
		if extension := path.Ext(name); extension != ".yaml" && extension != ".yml" {
			continue
		}
		content, err := t.read(full)
		if err != nil {
			return nil, err
		}
		if err := recoverPanic(func() error { _, err := factory.SliceFromBytes(content); return err }); err != nil {
			return nil, fmt.Errorf("%s: %w", full, err)
		}
		resources = append(resources, "./"+name)
	}
	return resources, nil
}

func outermostKustomization(t *tree, folder, name string) string {
	for i, b := range name {
		if b == '/' && kustomizationFile(t, path.Join(folder, name[:i])) != "" {
			return name[:i]
		}
	}
	return ""
}

func applySettings(k *objects.Kustomize, t *tree, folder string, to *types.Kustomization) error {
	to.NamePrefix = cmp.Or(k.NamePrefix, to.NamePrefix)
	to.NameSuffix = cmp.Or(k.NameSuffix, to.NameSuffix)
	to.Namespace = cmp.Or(k.Namespace, to.Namespace)
	for _, p := range k.Patches {
		to.Patches = append(to.Patches, types.Patch{Patch: p.Patch, Target: selectorOf(p.Target)})
	}
	for _, component := range k.Components {
		if full := path.Join(folder, component); leavesRoot(full) || kustomizationFile(t, full) == "" {
			return fmt.Errorf("component %q is no folder of the artifact with a kustomization", component)
		}
		to.Components = append(to.Components, component)
	}
	for _, image := range k.Images {
		setImage(to, image)
	}
	for _, replicas := range k.Replicas {
		wanted := types.Replica{Name: replicas.Name, Count: replicas.Count}
		at := slices.IndexFunc(to.Replicas, func(r types.Replica) bool { return r.Name == replicas.Name })
		if at < 0 {
			to.Replicas = append(to.Replicas, wanted)
		} else {
			to.Replicas[at] = wanted
		}
	}
	if len(k.CommonLabels) > 0 {
		if k.LabelsWithoutSelector {
			to.Labels = append(to.Labels, types.Label{Pairs: k.CommonLabels, IncludeTemplates: k.LabelsIncludeTemplates})
		} else {
			to.CommonLabels = mergeMaps(to.CommonLabels, k.CommonLabels) //nolint:staticcheck // as `kustomize edit add label` in Argo CD
		}
	}
	if len(k.CommonAnnotations) > 0 {
		to.CommonAnnotations = mergeMaps(to.CommonAnnotations, k.CommonAnnotations)
	}
	return nil
}

// setImage replaces given fields. A tag replaces a digest and vice versa.
func setImage(to *types.Kustomization, image objects.Image) {
	at := slices.IndexFunc(to.Images, func(i types.Image) bool { return i.Name == image.Name })
	if at < 0 {
		to.Images = append(to.Images, types.Image{Name: image.Name, NewName: image.NewName, NewTag: image.NewTag, Digest: image.Digest})
		return
	}
	has := &to.Images[at]
	has.NewName = cmp.Or(image.NewName, has.NewName)
	if image.NewTag != "" || image.Digest != "" {
		has.NewTag, has.Digest = image.NewTag, image.Digest
	}
}

func mergeMaps(under, over map[string]string) map[string]string {
	all := maps.Clone(under)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, over)
	return all
}

func selectorOf(t *objects.PatchTarget) *types.Selector {
	if t == nil {
		return nil
	}
	chosen := &types.Selector{LabelSelector: t.LabelSelector, AnnotationSelector: t.AnnotationSelector}
	chosen.Group, chosen.Version, chosen.Kind = t.Group, t.Version, t.Kind
	chosen.Name, chosen.Namespace = t.Name, t.Namespace
	return chosen
}

// building serializes builds, since kustomize has global schemas.
var building sync.Mutex

// buildKustomization replaces the artifact's file by the given kustomization. anywhere permits files outside its folder, as
// Flux does.
func buildKustomization(t *tree, file string, kustomization []byte, anywhere, hasSchema bool) (all resmap.ResMap, err error) {
	building.Lock()
	defer building.Unlock()
	if hasSchema {
		defer openapi.ResetOpenAPI()
	}
	options := krusty.MakeDefaultOptions()
	options.PluginConfig = types.DisabledPluginConfig()
	if anywhere {
		options.LoadRestrictions = types.LoadRestrictionsNone
	}
	err = recoverPanic(func() error {
		files := treeFiles{filesys.MakeFsInMemory(), t, file, kustomization}
		if all, err = krusty.MakeKustomizer(options).Run(files, path.Join("/", path.Dir(file))); err != nil {
			return err
		}
		return labelVersion(all)
	})
	return all, err
}

// kustomizeVersion belongs to the package api in go.mod.
const kustomizeVersion = "v5.8.1"

// labelVersion corrects the label of `managedByLabel`, which has the version of this program.
func labelVersion(all resmap.ResMap) error {
	const name, prefix = konfig.ManagedbyLabelKey, "kustomize-"
	own := prefix + provenance.GetProvenance().Semver()
	for _, resource := range all.Resources() {
		labels := resource.GetLabels()
		if labels[name] != own {
			continue
		}
		labels[name] = prefix + kustomizeVersion
		if err := resource.SetLabels(labels); err != nil {
			return err
		}
	}
	return nil
}

// recoverPanic is for malformed objects, on which kustomize panics.
func recoverPanic(run func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("kustomize cannot read it: %v", r)
		}
	}()
	return run()
}

// postRender includes hooks, as Helm does by default.
func postRender(manifests []manifest, k *objects.Kustomize) ([]manifest, error) {
	const input = "rendered.yaml"
	var text strings.Builder
	for _, m := range manifests {
		text.WriteString("---\n" + m.text + "\n")
	}
	kustomization := &types.Kustomization{
		TypeMeta:  types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind},
		Resources: []string{input},
	}
	t := &tree{files: map[string][]byte{input: []byte(text.String())}, names: []string{input}}
	if err := applySettings(k, t, ".", kustomization); err != nil {
		return nil, err
	}
	written, err := yaml.Marshal(kustomization)
	if err != nil {
		return nil, err
	}
	file := konfig.DefaultKustomizationFileName()
	all, err := buildKustomization(t, file, written, true, false)
	if err != nil {
		return nil, err
	}
	rendered, err := all.AsYaml()
	if err != nil {
		return nil, err
	}
	return readManifests(map[string]string{"rendered with post-renderers": string(rendered)}, false)
}

// treeFiles gives kustomize the files of an artifact with one replaced or added. Kustomize's own refuse some names.
type treeFiles struct {
	filesys.FileSystem
	tree    *tree
	name    string
	content []byte
}

func treePath(name string) string {
	clean := strings.TrimPrefix(path.Clean("/"+filepath.ToSlash(name)), "/")
	if clean == "" {
		return "."
	}
	return clean
}

func (f treeFiles) isFile(name string) bool {
	_, leads := f.tree.outside[name]
	_, has := f.tree.files[name]
	return has || leads || name == f.name
}

// IsDir implements filesys.FileSystem.
func (f treeFiles) IsDir(name string) bool {
	folder := treePath(name)
	return f.tree.isFolder(folder) || strings.HasPrefix(f.name, folder+"/")
}

// Exists implements filesys.FileSystem.
func (f treeFiles) Exists(name string) bool { return f.isFile(treePath(name)) || f.IsDir(name) }

// CleanedAbs implements filesys.FileSystem. It follows links, so that kustomize refuses those out of its folder.
func (f treeFiles) CleanedAbs(name string) (filesys.ConfirmedDir, string, error) {
	clean := f.tree.realPath(treePath(name))
	switch {
	case f.IsDir(clean):
		return filesys.ConfirmedDir(path.Join("/", clean)), "", nil
	case f.isFile(clean):
		return filesys.ConfirmedDir(path.Join("/", path.Dir(clean))), path.Base(clean), nil
	}
	return "", "", f.tree.missingFile(clean)
}

// ReadFile implements filesys.FileSystem.
func (f treeFiles) ReadFile(name string) ([]byte, error) {
	clean := treePath(name)
	switch {
	case clean == f.name:
		return f.content, nil
	case f.IsDir(name):
		return nil, fmt.Errorf("%q is a folder", clean)
	}
	return f.tree.read(clean)
}
