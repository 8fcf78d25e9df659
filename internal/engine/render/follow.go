package render

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	kubernetesyaml "sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// The reconciler of the host's folder must skip final objects: kustomize and Flux read only listed files, and Argo CD skips
// files with the comment skipped.
const (
	kustomizationFile = "kustomization.yaml"
	reconcilerFile    = "reconciler.yaml" // of a built-in reconciler
	kustomization     = skipped + "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:"
	skipped           = "# +argocd:skip-file-rendering\n"
)

// HasObjects reports whether the folder has final objects instead of pointers.
func HasObjects(assignment *schedule.Assignment) bool {
	return IsRendered(assignment) && fleet.RenderingOf(assignment.Host.ClusterType, assignment.Target.Target) == fleet.RenderObjects
}

// IsForObjects reports whether a file belongs to final objects.
func IsForObjects(name string) bool {
	return name == kustomizationFile || folder.IsInObjectsFolder(name)
}

// AddFinalObjects adds final objects to the rendered files, and lets the reconciler's object follow them. The error may be
// [ErrUnknown].
func (t *Templates) AddFinalObjects(subject Subject, files []AssignmentFile, result *objects.Rendering) ([]AssignmentFile, error) {
	if subject.Repo == nil {
		return nil, ErrUnknown
	}
	of := t.hostOf(subject.Assignment).reconciler
	kind := of.KindFor(manifestsOf(&subject.Assignment.Target.Target.Manifests)).Kind
	final, spec := of.FinalOf(kind)
	made, digest, err := objectFiles(result, final.Wraps)
	if err != nil {
		return nil, err
	}
	edits := final.Follow(reconciler.Place{
		Repository: t.repositoryOf(subject.Assignment, subject.Repo), Branch: subject.Repo.Branch,
		Path: path.Join(subject.Repo.Path, subject.Assignment.Key(), folder.ObjectsFolder), Digest: digest,
	})
	listed := kustomization
	for _, file := range files {
		if extension := path.Ext(file.Name); extension == ".yaml" || extension == ".yml" {
			listed += "\n  - " + file.Name
		}
		content := file.Content
		if file.Name == reconcilerFile {
			if content, err = followObjects(content, kind, spec, edits); err != nil {
				return nil, err
			}
		}
		made = append(made, AssignmentFile{Name: file.Name, Content: content})
	}
	made = append(made, AssignmentFile{Name: kustomizationFile, Content: []byte(listed + "\n")})
	slices.SortFunc(made, func(a, b AssignmentFile) int { return cmp.Compare(a.Name, b.Name) })
	return made, nil
}

// followObjects removes the sources from a reconciler's file and edits the spec of the deploying object.
func followObjects(content []byte, kind, spec string, edits []reconciler.Edit) ([]byte, error) {
	return rewriteDocuments(content, func(document *yaml.Node) error {
		at := document.Content[0]
		name := member(at, "kind")
		switch {
		case name == nil:
		case reconciler.IsSource(name.Value):
			*document = yaml.Node{}
		case name.Value == kind:
			at = nodeAt(at, spec)
			for _, edit := range edits {
				if err := setField(at, edit.Path, edit.Value); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// setField sets the field at a path of a mapping; nil removes it.
func setField(mapping *yaml.Node, at string, value any) error {
	step, rest, isDeeper := strings.Cut(at, ".")
	present := member(mapping, step)
	if value == nil && (present == nil || !isDeeper) {
		removeField(mapping, step)
		return nil
	}
	if present == nil || isDeeper && present.Kind != yaml.MappingNode {
		removeField(mapping, step)
		present = &yaml.Node{Kind: yaml.MappingNode}
		mapping.Content = append(mapping.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: step}, present)
	}
	if isDeeper {
		return setField(present, rest, value)
	}
	return present.Encode(value)
}

// objectFiles returns the files and their digest. The error lists every object that cannot be written.
func objectFiles(result *objects.Rendering, asChart bool) (files []AssignmentFile, digest string, err error) {
	var all, definitions [][]byte
	var mistakes []error
	var secrets []string
	for i := range result.Objects {
		o := &result.Objects[i]
		isTwice := i > 0 && o.Identity() == result.Objects[i-1].Identity()
		switch err := objectProblem(o, asChart, isTwice); {
		case errors.Is(err, errPlainSecret):
			secrets = append(secrets, wording.Quoted([]string{o.Name})...)
		case err != nil:
			mistakes = append(mistakes, err)
		}
		if asChart && o.IsCRD {
			definitions = append(definitions, o.YAML)
		} else {
			all = append(all, o.YAML)
		}
	}
	if len(secrets) > 0 {
		secrets = slices.Compact(secrets)
		mistakes = append(mistakes, fmt.Errorf("%s %s would be in the GitOps repository as plain text: "+
			"leave Secrets out of the manifests and bring their values by secrets of config containers, "+
			"encrypt them with SOPS, or set render = %q",
			wording.OneOrMany(len(secrets), "Secret", "Secrets"), wording.List(secrets, wording.Named), fleet.RenderPreview))
	}
	text, crds := bytes.Join(all, separator), bytes.Join(definitions, separator)
	if asChart {
		if err := checkReleaseSize(text); err != nil {
			mistakes = append(mistakes, err)
		}
	}
	if mistakes != nil {
		return nil, "", errors.Join(mistakes...)
	}
	digest = fmt.Sprintf("%x", sha256.Sum256(slices.Concat(text, []byte("\x00"), crds)))
	if asChart {
		files, err = chartFiles(result.Chart, joinParts(all, MaxFile), joinParts(definitions, MaxFile), digest)
	} else {
		files = kustomizationFiles(joinParts(all, MaxFile))
	}
	for i := range files {
		files[i].Name = path.Join(folder.ObjectsFolder, files[i].Name)
	}
	return files, digest, err
}

var errPlainSecret = errors.New("a Secret is plain text")

// objectProblem returns the reason why an object cannot be written. isTwice: the object before has the same identity.
func objectProblem(o *objects.FinalObject, asChart, isTwice bool) error {
	isPlain, err := hasPlainSecret(o)
	switch {
	case o.On != "":
		return fmt.Errorf("%s %q is not the same on install and on upgrade, and with render = %[3]q there is one of it: "+
			"set values with which it is, or render = %[4]q", o.Kind, o.Name, fleet.RenderObjects, fleet.RenderPreview)
	case err != nil:
		return err
	case isPlain && o.Kind != "Secret":
		return fmt.Errorf("%s %q has a Secret in it, which would be in the GitOps repository as plain text", o.Kind, o.Name)
	case isPlain:
		return errPlainSecret
	case len(skipped)+len(o.YAML) > MaxFile:
		return fmt.Errorf("%s %q has more than %d MiB", o.Kind, o.Name, MaxFile>>20)
	case !asChart && o.IsGenerated():
		return fmt.Errorf("%s %q has a generateName in place of a name, with which render = %q is not possible",
			o.Kind, o.Name, fleet.RenderObjects)
	case !asChart && isTwice:
		return fmt.Errorf("%s %q is there as a hook and as another object, with which render = %q is not possible",
			o.Kind, o.Name, fleet.RenderObjects)
	}
	return nil
}

var separator = []byte("---\n")

// joinParts joins objects to at least one file. A file of several objects has at most maxFile bytes.
func joinParts(all [][]byte, maxFile int) (files [][]byte) {
	var file []byte
	for i, object := range all {
		if i > 0 && len(skipped)+len(file)+len(separator)+len(object) > maxFile {
			files, file = append(files, file), nil
		}
		if file != nil {
			file = append(file, separator...)
		}
		file = append(file, object...)
	}
	return append(files, file)
}

// subchart has the final objects, because Helm stores the chart's own files twice in the release.
const subchart = "rendered"

func chartFiles(of *objects.Chart, all, definitions [][]byte, digest string) (files []AssignmentFile, err error) {
	about := objects.Chart{}
	if of != nil {
		about = *of
	}
	// Flux upgrades a release if the version changes, and uninstalls it if the name does.
	joint := "+"
	if strings.Contains(about.Version, "+") {
		joint = "."
	}
	const version = "1.0.0"
	below := "charts/" + subchart + "/"
	for name, description := range map[string]map[string]any{
		"Chart.yaml": {
			"apiVersion": "v2", "type": "application", "name": about.Name, "version": about.Version + joint + digest[:12],
			"appVersion":   about.AppVersion,
			"dependencies": []any{map[string]any{"name": subchart, "version": version}},
		},
		below + "Chart.yaml": {"apiVersion": "v2", "type": "application", "name": subchart, "version": version},
	} {
		text, err := kubernetesyaml.Marshal(description)
		if err != nil {
			return nil, err
		}
		files = append(files, AssignmentFile{Name: name, Content: []byte(skipped + string(text))})
	}
	template := ""
	for i, part := range all {
		name := folder.ObjectsFileAt(i)
		template += fmt.Sprintf("---\n{{ .Files.Get %q }}\n", name)
		files = append(files, AssignmentFile{Name: below + name, Content: append([]byte(skipped), part...)})
	}
	files = append(files, AssignmentFile{Name: below + "templates/all.yaml", Content: []byte(template)})
	for i, part := range definitions {
		if len(part) > 0 {
			files = append(files, AssignmentFile{Name: below + "crds/" + folder.ObjectsFileAt(i), Content: append([]byte(skipped), part...)})
		}
	}
	return files, nil
}

func kustomizationFiles(all [][]byte) (files []AssignmentFile) {
	listed := kustomization
	for i, part := range all {
		name := folder.ObjectsFileAt(i)
		files = append(files, AssignmentFile{Name: name, Content: append([]byte(skipped), part...)})
		if len(part) > 0 {
			listed += "\n  - " + name
		}
	}
	if listed == kustomization {
		listed += " []"
	}
	return append(files, AssignmentFile{Name: kustomizationFile, Content: []byte(listed + "\n")})
}

// maxRelease is the limit of a Secret. Helm stores a release in one.
const maxRelease = 1 << 20

// releaseSize estimates the stored release: JSON, compressed, in base64.
func releaseSize(objects []byte) int {
	const rest = 8 << 10 // description and state of the chart
	if len(objects) < maxRelease/2 {
		return len(objects) // an upper bound
	}
	text, _ := json.Marshal(string(objects))
	var compressed bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&compressed, gzip.BestCompression) // as Helm does
	_, _ = writer.Write(text)
	_ = writer.Close()
	return rest + base64.StdEncoding.EncodedLen(compressed.Len())
}

// hasPlainSecret reports whether an object is, or contains, an unencrypted Secret. A partly encrypted one is an error.
func hasPlainSecret(o *objects.FinalObject) (bool, error) {
	if !containsSecret(o.YAML) || !maybeSecret.Match(o.YAML) { // skips most objects unread
		return false, nil
	}
	documents, err := fleet.ReadObjects(string(o.YAML))
	if err != nil {
		return false, err
	}
	object := documents[0]
	switch {
	case !secret.IsSecret(object):
		return secret.EmbedsPlain(object), nil
	case !secret.HasPlain(object):
		return false, nil
	case object["sops"] == nil:
		return true, nil
	}
	if metadata, _ := object["metadata"].(map[string]any); metadata != nil && metadata["namespace"] == nil {
		metadata["namespace"] = o.Namespace
	}
	if _, err := encrypted.Check(object); err != nil {
		return false, fmt.Errorf("Secret %q: %w", o.Name, err)
	}
	return false, nil
}

// containsSecret reports whether text contains "ecret" in any case, as each match of maybeSecret does. It takes a fiftieth of the
// time of a regular expression.
func containsSecret(text []byte) bool {
	const word = "ecret" // the pattern also finds U+017F, a long s
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && bytes.EqualFold(text[i:i+len(word)], []byte(word)) {
			return true
		}
	}
	return false
}

var maybeSecret = regexp.MustCompile(`(?i)kind["']?\s*:\s*["']?\s*secret`)

// FormerObjects returns the final objects of a folder, sorted, with the namespaces of wanted ones of the same name.
func FormerObjects(files []folder.File, wanted []objects.FinalObject) (former []objects.FinalObject, err error) {
	namespaces := map[objects.Identity]string{} // by identity without a namespace
	for i := range wanted {
		of := wanted[i].Identity()
		of.Namespace = ""
		namespaces[of] = wanted[i].Namespace
	}
	for _, file := range files {
		if !folder.IsObjectsFile(file.Name) {
			continue
		}
		documents, err := fleet.ReadObjects(string(file.Content))
		if err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", file.Name, err)
		}
		for _, object := range documents {
			text, err := kubernetesyaml.Marshal(object)
			if err != nil {
				return nil, err
			}
			of := objects.IdentityOf(object)
			if of.Namespace == "" {
				of.Namespace = namespaces[of]
			}
			former = append(former, objects.FinalObject{Group: of.Group, Kind: of.Kind, Namespace: of.Namespace, Name: of.Name, YAML: text})
		}
	}
	slices.SortStableFunc(former, func(a, b objects.FinalObject) int {
		return a.Identity().Compare(b.Identity())
	})
	return former, nil
}

// CheckRelease returns an error if Helm certainly could not store the release of final objects.
func (t *Templates) CheckRelease(assignment *schedule.Assignment, result *objects.Rendering) error {
	of := t.hostOf(assignment).reconciler
	final, _ := of.FinalOf(of.KindFor(manifestsOf(&assignment.Target.Target.Manifests)).Kind)
	if final == nil || !final.Wraps {
		return nil
	}
	var all [][]byte
	for i := range result.Objects {
		if o := &result.Objects[i]; !o.IsCRD && o.On != objects.OnInstall {
			all = append(all, o.YAML)
		}
	}
	return checkReleaseSize(bytes.Join(all, separator))
}

func checkReleaseSize(all []byte) error {
	size := releaseSize(all)
	if size <= maxRelease {
		return nil
	}
	return fmt.Errorf("its final objects make a release of %d KiB, and Helm stores a release in a Secret, which can have %d KiB: "+
		"set values with which the chart renders less, or divide it into several deployment targets", size>>10, maxRelease>>10)
}
