package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// In the value of provider::flotilla::fleet, entries are {known, pending} instead of a map: Terraform and the plugin
// framework walk each entry of a map many times, which dominates plans with thousands of entries. known is one JSON
// text, unknown if other entries may exist; pending has the unknown entries.

// EncodeEntries encodes entries of canonical JSON as one text.
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

// ParseEntries decodes the text of [EncodeEntries]. Its error never has a value.
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
