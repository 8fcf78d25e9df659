package gitops

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Owner is one flotilla_assignment, as the repository knows it.
type Owner struct {
	// Name and Path together are the owner: two of one name at two paths are two.
	Name string
	// Environment is what the owner's records and commits say; it decides nothing.
	Environment string
	// Path is where the owner's folders begin; "" is the repository's root.
	Path string
}

// check finds what is wrong with an owner.
func (o Owner) check() error {
	if err := git.CheckName(o.Name); err != nil {
		return fmt.Errorf("the owner's name: %w", err)
	}
	if strings.ContainsFunc(o.Environment, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return errors.New("the owner's environment has a control character")
	}
	return git.CheckPath(o.Path)
}

// Deployed maps each host to its deployment targets, and those to the tree ids
// of their folders, in hex. A host without deployment targets is there, with an
// empty map: its folder exists.
type Deployed map[string]map[string]string

// Record says in the repository why a folder is there.
type Record struct {
	Workload         string   `json:"workload"`
	DeploymentTarget string   `json:"deployment_target"`
	Policies         []string `json:"policies,omitempty"`
	ConfigVersion    string   `json:"config_version,omitempty"`
}

// hostRecord is the file that records what one owner owns on one host.
type hostRecord struct {
	Environment       string                  `json:"environment,omitempty"`
	DeploymentTargets map[string]folderRecord `json:"deployment_targets"`
}

type folderRecord struct {
	Record
	Tree string `json:"tree"`
}

const (
	recordsFolder = ".flotilla"
	recordSuffix  = ".json"
	markerSuffix  = ".md"
	clustersHost  = "clusters"
	// maxRecord is beyond 10,000 folders on one host.
	maxRecord = 8 << 20
)

// folder is where an owner's folder for a deployment target is.
func (o Owner) folder(host, target string) string { return path.Join(o.Path, host, target) }

// marker is the file that keeps the host's folder existing.
func (o Owner) marker(host string) string { return path.Join(o.Path, host, o.Name+markerSuffix) }

// records is the folder of the owner's records.
func (o Owner) records() string { return path.Join(o.Path, recordsFolder, o.Name) }

// record is the file that records what is owned on a host.
func (o Owner) record(host string) string { return path.Join(o.records(), host+recordSuffix) }

// markerText is what the marker says.
func (o Owner) markerText() []byte {
	return []byte("Flotilla writes this folder for the assignment `" + o.Name +
		"`. What is changed here by hand is put back by the next apply.\n")
}

// checkHost tells what is wrong with a host: it is "<name>" or "clusters/<name>".
func checkHost(host string) error {
	name, cluster := strings.CutPrefix(host, clustersHost+"/")
	if !cluster && host == clustersHost {
		return fmt.Errorf("host %q: is where the folders of single clusters are", host)
	}
	if err := git.CheckName(name); err != nil {
		return fmt.Errorf("host %q: %w", host, err)
	}
	if len(name)+len(recordSuffix) > git.MaxSegment {
		return fmt.Errorf("host %q: the name is too long for its record", host)
	}
	return nil
}

// encode writes a record canonically: keys in order, indented for a person's
// diff, ending in a newline. By hand, because an apply encodes the records of
// all hosts to compare their ids, and encoding/json takes as long for that as
// for everything else together.
func (r hostRecord) encode() []byte {
	b := make([]byte, 0, 64+300*len(r.DeploymentTargets))
	b = append(b, "{\n"...)
	if r.Environment != "" {
		b = appendMember(b, "  ", "environment", r.Environment, ",\n")
	}
	b = append(b, `  "deployment_targets": {`...)
	for i, target := range slices.Sorted(maps.Keys(r.DeploymentTargets)) {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n    "...)
		b = appendText(b, target)
		b = r.DeploymentTargets[target].encode(append(b, ": {\n"...))
		b = append(b, "    }"...)
	}
	if len(r.DeploymentTargets) > 0 {
		b = append(b, "\n  "...)
	}
	return append(b, "}\n}\n"...)
}

func (f folderRecord) encode(b []byte) []byte {
	const indent = "      "
	b = appendMember(b, indent, "workload", f.Workload, ",\n")
	b = appendMember(b, indent, "deployment_target", f.DeploymentTarget, ",\n")
	if len(f.Policies) > 0 {
		b = append(b, indent+`"policies": [`...)
		for i, policy := range f.Policies {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(b, "\n"+indent+"  "...)
			b = appendText(b, policy)
		}
		b = append(b, "\n"+indent+"],\n"...)
	}
	if f.ConfigVersion != "" {
		b = appendMember(b, indent, "config_version", f.ConfigVersion, ",\n")
	}
	return appendMember(b, indent, "tree", f.Tree, "\n")
}

func appendMember(b []byte, indent, name, value, end string) []byte {
	b = append(b, indent...)
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, `": `...)
	return append(appendText(b, value), end...)
}

// appendText quotes text as encoding/json does, without escaping for HTML.
func appendText(b []byte, text string) []byte {
	for i := range len(text) {
		if c := text[i]; c < ' ' || c == '"' || c == '\\' || c >= 0x7f {
			return appendEscaped(b, text)
		}
	}
	b = append(b, '"')
	b = append(b, text...)
	return append(b, '"')
}

func appendEscaped(b []byte, text string) []byte {
	var quoted bytes.Buffer
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a string can always be encoded
	return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}

// parseRecord reads a record. It was in a place where anybody can write, so
// that each name is checked like any path: a record never makes us touch what
// is not below its host.
func parseRecord(content []byte) (hostRecord, error) {
	if len(content) > maxRecord {
		return hostRecord{}, fmt.Errorf("the record is longer than %d MiB", maxRecord>>20)
	}
	var r hostRecord
	if err := json.Unmarshal(content, &r); err != nil {
		return hostRecord{}, fmt.Errorf("the record is not valid: %w", err)
	}
	for target, folder := range r.DeploymentTargets {
		if err := git.CheckName(target); err != nil {
			return hostRecord{}, fmt.Errorf("the record is not valid: %w", err)
		}
		if _, err := git.ParseID(folder.Tree); err != nil {
			return hostRecord{}, fmt.Errorf("the record is not valid: %w", err)
		}
	}
	return r, nil
}

// recordEntries lists an owner's records at the tip: host to the record's blob.
// The folder of the records must have been opened, and its clusters.
func (w *layout) recordEntries(records string) map[string]git.Hash {
	hosts := map[string]git.Hash{}
	list := func(at, prefix string) {
		d := w.Directory(at)
		if d == nil {
			return
		}
		d.Each(func(e git.Entry) {
			name, ok := strings.CutSuffix(e.Name, recordSuffix)
			host := prefix + name
			if ok && e.IsFile() && checkHost(host) == nil {
				hosts[host] = e.ID
			}
		})
	}
	list(records, "")
	list(path.Join(records, clustersHost), clustersHost+"/")
	return hosts
}

// readRecords fetches and reads the given records, by host. One that cannot be
// read is left out.
func (w *layout) readRecords(ctx context.Context, entries map[string]git.Hash) (map[string]hostRecord, error) {
	if err := w.Need(ctx, slices.Collect(maps.Values(entries))); err != nil {
		return nil, err
	}
	read := make(map[string]hostRecord, len(entries))
	for host, id := range entries {
		content, err := w.Blob(id)
		if err != nil {
			return nil, err
		}
		if r, err := parseRecord(content); err == nil {
			read[host] = r
		}
	}
	return read, nil
}
