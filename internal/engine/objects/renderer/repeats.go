package renderer

import (
	"encoding/json"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// maxRepeatedBytes bounds each of what repeats have.
const maxRepeatedBytes = 2 << 20

// repeats are what a worker has read and written last: a chart renders most of its documents alike for all hosts.
type parseCache struct {
	documents lastUsed[*parsedDocument] // by their text
	yaml      lastUsed[string]          // of values that templates write, by their JSON
}

func newParseCache() *parseCache {
	return &parseCache{documents: lastUsed[*parsedDocument]{most: maxRepeatedBytes}, yaml: lastUsed[string]{most: maxRepeatedBytes}}
}

// document is a document of YAML that was read.
type parsedDocument struct {
	json    []byte                // with the newline by which Helm ends it, which is part of a block of text at its end
	isPlain bool                  // is certainly no hook, and nothing that Helm refuses
	objects []objects.FinalObject // nil until they are asked for
	size    int                   // of the objects in JSON
}

// read reads a document of YAML.
func (r *parseCache) read(text string) (*parsedDocument, error) {
	if d, has := r.documents.get(text); has {
		return d, nil
	}
	inJSON, err := yaml.YAMLToJSON([]byte(text + "\n"))
	if err != nil {
		return nil, err
	}
	d := &parsedDocument{json: inJSON}
	var head releaseutil.SimpleHead
	if json.Unmarshal(inJSON, &head) == nil {
		isHook := false
		if head.Metadata != nil {
			_, isHook = head.Metadata.Annotations[release.HookAnnotation]
		}
		d.isPlain = !isHook
	}
	r.documents.keep(strings.Clone(text), d, int64(len(text)+2*len(inJSON))) // the YAML of the objects is about as long as their JSON
	return d, nil
}

// toYAML is Helm's function of templates.
func (r *parseCache) toYAML(value any) string {
	inJSON, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	if text, has := r.yaml.get(string(inJSON)); has {
		return text
	}
	written, err := yaml.JSONToYAML(inJSON)
	if err != nil {
		return ""
	}
	text := strings.TrimSuffix(string(written), "\n")
	r.yaml.keep(string(inJSON), text, int64(len(inJSON)+len(text)))
	return text
}
