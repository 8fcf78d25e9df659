package renderer

import (
	"encoding/json"
	"strings"

	release "helm.sh/helm/v4/pkg/release/v1"
	releaseutil "helm.sh/helm/v4/pkg/release/v1/util"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
)

// maxRepeatedBytes bounds each list of a parseCache.
const maxRepeatedBytes = 2 << 20

// parseCache is only for speed: charts render most documents equally for all hosts, and BenchmarkPreview takes 1.3 times the
// processor time without it.
type parseCache struct {
	documents lastUsed[*parsedDocument] // by their text
	yaml      lastUsed[string]          // of values that templates write, by their JSON
}

func newParseCache() *parseCache {
	return &parseCache{documents: lastUsed[*parsedDocument]{most: maxRepeatedBytes}, yaml: lastUsed[string]{most: maxRepeatedBytes}}
}

type parsedDocument struct {
	json    []byte                // with Helm's final newline, which belongs to a text block
	isPlain bool                  // certainly no hook or mistake
	objects []objects.FinalObject // nil until first use
	size    int                   // of the objects in JSON
}

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
	r.documents.keep(strings.Clone(text), d, int64(len(text)+2*len(inJSON))) // objects in YAML and JSON are about equally long
	return d, nil
}

// toYAML caches Helm's function.
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
