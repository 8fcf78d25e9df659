package agent

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// Texts encodes objects as YAML documents, without "---".
func Texts(objects []StagedObject) ([]string, error) {
	texts := make([]string, len(objects))
	for i := range objects {
		var text strings.Builder
		encoder := yaml.NewEncoder(&text)
		encoder.SetIndent(2)
		if err := encoder.Encode(objects[i].Object); err != nil {
			return nil, err
		}
		if err := encoder.Close(); err != nil {
			return nil, err
		}
		texts[i] = text.String()
	}
	return texts, nil
}
