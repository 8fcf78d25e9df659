package renderer

import (
	"bytes"
	"encoding/json"

	goyaml "go.yaml.in/yaml/v2"
	"sigs.k8s.io/yaml"
)

// toYAML writes JSON as YAML, byte for byte as yaml.JSONToYAML does, which reads it as YAML and so takes three times as long.
func toYAML(text []byte) ([]byte, error) {
	if !isSimple(text) {
		return yaml.JSONToYAML(text)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, err
	}
	return goyaml.Marshal(value)
}

// isSimple tells whether JSON is certainly the same when it is read as YAML, which refuses some characters. Its numbers fit
// into 64 bits with a sign.
func isSimple(text []byte) bool {
	digits := 0
	for _, b := range text {
		switch {
		case b > '~':
			return false
		case '0' <= b && b <= '9':
			if digits++; digits > 18 {
				return false
			}
		default:
			digits = 0
		}
	}
	return true
}
