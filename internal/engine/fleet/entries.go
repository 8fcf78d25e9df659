package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// In the value that provider::flotilla::fleet returns, the entries of one kind are an object {known, pending}, and not
// a map: Terraform and the plugin framework walk every entry of a map many times, which is most of a plan for thousands
// of them. known is one JSON text of the entries that are known, and is unknown as a whole where there may be others;
// pending has an unknown value for each entry that is not known yet.

// EncodeEntries returns the text of entries, each of which is canonical JSON.
func EncodeEntries(entries map[string]string) (string, error) {
	var buffer bytes.Buffer
	buffer.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(entries)) {
		if i > 0 {
			buffer.WriteByte(',')
		}
		if err := writeString(&buffer, name); err != nil {
			return "", err
		}
		buffer.WriteByte(':')
		buffer.WriteString(entries[name])
	}
	buffer.WriteByte('}')
	return buffer.String(), nil
}

// ParseEntries reads that text. Its error does not repeat the text, which may have values in it.
func ParseEntries(text string) (map[string]string, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil || raw == nil {
		return nil, errors.New("must be the JSON that provider::flotilla::fleet returned")
	}
	entries := make(map[string]string, len(raw))
	for name, entry := range raw {
		entries[name] = string(entry)
	}
	return entries, nil
}
