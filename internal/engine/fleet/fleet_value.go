package fleet

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Format is the version of [Value] in Terraform.
const Format = "1"

// Value is the model, which decides the assignments, and entries that affect only content. An unknown value makes only
// its entry unknown, which is absent.
type Value struct {
	Format      string
	Environment string
	Model       string // canonical JSON; empty while unknown
	Config      Config // by config container
	Manifests   map[string]string
	Constraints map[string]string
}

// Known reports whether the model is known, which every computation needs.
func (v Value) Known() bool { return v.Model != "" }

// Fleet decodes the value. Unknown manifests are pending; unknown containers have no entry.
func (v Value) Fleet() (*Fleet, Config, error) {
	if err := CheckFormat(v.Format); err != nil {
		return nil, nil, err
	}
	fleet, err := ParseModel(v.Model)
	if err != nil {
		return nil, nil, err
	}
	if err := fleet.adoptManifests(v.Manifests); err != nil {
		return nil, nil, err
	}
	return fleet, v.Config, nil
}

// CheckFormat returns an error for a fleet of another format.
func CheckFormat(format string) error {
	if format == Format {
		return nil
	}
	return fmt.Errorf("fleet was made by another version of the provider (its format is %q, this version takes %q): "+
		"make it again with provider::flotilla::fleet or control_plane of this version", format, Format)
}

func (f *Fleet) adoptManifests(entries map[string]string) error {
	for workload, target := range f.Targets() {
		name := FullName(workload.Name, target.Name)
		entry, known := entries[name]
		if target.ManifestsPending = !known; !known {
			continue
		}
		if err := parseStrictly(entry, &target.Manifests); err != nil {
			return fmt.Errorf("manifests of deployment target %q are not what provider::flotilla::fleet returned: %w", name, err)
		}
	}
	return nil
}

// Value encodes the known parts. A map is nil unless all names of its entries are known.
func (d *Decoded) Value() (Value, error) {
	value := Value{Format: Format}
	if d.ContainersKnown {
		value.Config = d.Config
	}
	if d.EnvironmentKnown {
		value.Environment = d.Environment
	}
	if d.Known {
		model, err := d.Fleet.Model()
		if err != nil {
			return Value{}, err
		}
		value.Model = model
	}
	if d.ConstraintsKnown {
		value.Constraints = make(map[string]string, len(d.Constraints))
		for _, constraint := range d.Constraints {
			text, err := encode(constraint)
			if err != nil {
				return Value{}, fmt.Errorf("constraint %q: %w", constraint.Name, err)
			}
			value.Constraints[constraint.Name] = text
		}
	}
	if !d.TargetsKnown {
		return value, nil
	}
	value.Manifests = map[string]string{}
	for workload, target := range d.Fleet.Targets() {
		if target.ManifestsPending {
			continue
		}
		name := FullName(workload.Name, target.Name)
		manifests, err := encode(target.Manifests)
		if err != nil {
			return Value{}, fmt.Errorf("manifests of deployment target %q: %w", name, err)
		}
		value.Manifests[name] = manifests
	}
	return value, nil
}

// Entries are {known, pending} in Terraform. A map would dominate plans with thousands of entries: Terraform and the
// framework walk each many times. known is one JSON text, unknown if other entries may exist; pending has the unknown
// ones.

// EncodeEntries encodes entries of canonical JSON as one text.
func EncodeEntries(entries map[string]string) (string, error) {
	var text strings.Builder
	text.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(entries)) {
		if i > 0 {
			text.WriteByte(',')
		}
		quoted, err := encode(name)
		if err != nil {
			return "", err
		}
		text.WriteString(quoted + ":")
		text.WriteString(entries[name])
	}
	text.WriteByte('}')
	return text.String(), nil
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
