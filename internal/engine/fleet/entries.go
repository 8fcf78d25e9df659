package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"slices"
)

// Entries are {known, pending} in Terraform. A map would dominate plans with thousands of entries: Terraform and the
// framework walk each many times. known is one JSON text, unknown if other entries may exist; pending has the unknown
// ones.

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
