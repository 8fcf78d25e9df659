package pipeline

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/credential"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
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

func (r *Computation) errExposed(subject render.Subject, final []objects.FinalObject) error {
	var mistakes []error
	for _, e := range r.exposedIn(subject, final) {
		mistakes = append(mistakes, fmt.Errorf("%s, and final objects are committed as they are: %s", e.clause, remedy(e.name)))
	}
	return errors.Join(mistakes...)
}
