// Package fleet is the model of one environment, the input of scheduling, hydration and rendering. It decodes objects as
// users write them (HCL values, YAML, JSON) and reports every mistake with its path. It does not depend on Terraform or
// Git.
package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
)

// Fleet has the objects of one environment, sorted by name. Its JSON is the model; other values are in [Config] and
// [Value].
type Fleet struct {
	Environment      string               `json:"environment"`
	Workspaces       []Workspace          `json:"workspaces,omitempty"`
	ClusterTypes     []ClusterType        `json:"cluster_types,omitempty"`
	Clusters         []Cluster            `json:"clusters,omitempty"`
	Workloads        []Workload           `json:"workloads,omitempty"`
	TargetPolicies   []TargetPolicy       `json:"target_policies,omitempty"`
	Assignments      []ExplicitAssignment `json:"assignments,omitempty"`
	Explicit         bool                 `json:"explicit_assignments,omitempty"`
	ConfigContainers []ConfigContainer    `json:"config_containers,omitempty"`
	ConfigSchemas    []ConfigSchema       `json:"config_schemas,omitempty"`
	Templates        []Template           `json:"templates,omitempty"`
	Hydration        *Hydration           `json:"hydration,omitempty"`
}

// Config has the canonical JSON of data by config container. Secrets have entries of their own.
type Config map[string]string

// Labels are the labels of an object.
type Labels map[string]string

// Targets yields the deployment targets of all workloads.
func (f *Fleet) Targets() iter.Seq2[*Workload, *DeploymentTarget] {
	return func(yield func(*Workload, *DeploymentTarget) bool) {
		for i := range f.Workloads {
			for j := range f.Workloads[i].DeploymentTargets {
				if !yield(&f.Workloads[i], &f.Workloads[i].DeploymentTargets[j]) {
					return
				}
			}
		}
	}
}

// FullName returns "<workload>-<target>".
func FullName(workload, target string) string {
	return workload + "-" + target
}

// Model returns the canonical JSON. Equal fleets have equal models.
func (f *Fleet) Model() (string, error) {
	model, err := encode(f)
	if err != nil {
		return "", fmt.Errorf("fleet of environment %q: %w", f.Environment, err)
	}
	return model, nil
}

// ParseModel decodes [Fleet.Model]. All manifests are pending.
func ParseModel(model string) (*Fleet, error) {
	fleet := &Fleet{}
	if err := parseStrictly(model, fleet); err != nil {
		return nil, fmt.Errorf("fleet model does not come from provider::flotilla::fleet: %w", err)
	}
	for _, target := range fleet.Targets() {
		target.ManifestsPending = true
	}
	return fleet, nil
}

func encode(value any) (string, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))), nil
}

// maxModel is in bytes: ten times a fleet of 1,000,000 assignments.
const maxModel = 512 << 20

func parseStrictly(text string, into any) error {
	if len(text) > maxModel {
		return fmt.Errorf("is larger than %d MiB", maxModel>>20)
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	decoder.DisallowUnknownFields()
	err := decoder.Decode(into)
	if _, more := decoder.Token(); err == nil && !errors.Is(more, io.EOF) {
		err = fmt.Errorf("text follows it at offset %d", decoder.InputOffset())
	}
	return err
}

func (f *Fleet) sortLists() {
	slices.SortStableFunc(f.Workspaces, func(a, b Workspace) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.ClusterTypes, func(a, b ClusterType) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Clusters, func(a, b Cluster) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Workloads, func(a, b Workload) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.TargetPolicies, func(a, b TargetPolicy) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.ConfigContainers, func(a, b ConfigContainer) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.ConfigSchemas, func(a, b ConfigSchema) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortStableFunc(f.Templates, func(a, b Template) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Name, b.Name))
	})
	slices.SortStableFunc(f.Assignments, CompareExplicitAssignments)
	for i := range f.Workloads {
		slices.SortStableFunc(f.Workloads[i].DeploymentTargets, func(a, b DeploymentTarget) int {
			return cmp.Compare(a.Name, b.Name)
		})
	}
}

// MergeLabels returns the union in a new map. Later sets win.
func MergeLabels(sets ...Labels) Labels {
	merged := Labels{}
	for _, set := range sets {
		maps.Copy(merged, set)
	}
	return merged
}

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
