package gitops

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// recordFormat is the format of written records. Members of a newer format survive, with the format.
const recordFormat = 1

// maxRecord fits 10,000 folders on one host.
const maxRecord = 12 << 20

// FolderRecord is the record of one folder.
type FolderRecord struct {
	folder.Record
	// Tree is the folder as its owner last wrote it.
	Tree       string
	TreeBefore string
	// Changed is the time of the commit with Tree, and Source its origin, if the record has them.
	Changed time.Time
	Source  folder.Source
}

type hostRecord struct {
	Format            int                     `json:"format"`
	Environment       string                  `json:"environment,omitempty"`
	Holder            string                  `json:"holder,omitempty"`
	Formerly          []string                `json:"formerly,omitempty"`
	OwnerFormerly     []string                `json:"owner_formerly,omitempty"`
	DeploymentTargets map[string]folderRecord `json:"deployment_targets"`

	more fields
}

type folderRecord struct {
	folder.Record
	Tree       string        `json:"tree"`
	TreeBefore string        `json:"tree_before,omitempty"`
	Changed    string        `json:"changed,omitempty"` // RFC 3339
	Source     folder.Source `json:"source,omitempty"`

	more fields
}

type fields map[string]json.RawMessage

func (f folderRecord) toPublic() FolderRecord {
	changed, _ := time.Parse(time.RFC3339, f.Changed) // checked by parseRecord
	return FolderRecord{Record: f.Record, Tree: f.Tree, TreeBefore: f.TreeBefore, Changed: changed, Source: f.Source}
}

// hasSameMeaning ignores the format.
func (r hostRecord) hasSameMeaning(as hostRecord) bool {
	return r.Environment == as.Environment && r.Holder == as.Holder && r.hasSameNames(as) &&
		maps.EqualFunc(r.DeploymentTargets, as.DeploymentTargets, folderRecord.hasSameMeaning)
}

func (f folderRecord) hasSameMeaning(as folderRecord) bool {
	return f.Tree == as.Tree && f.TreeBefore == as.TreeBefore && f.Changed == as.Changed && f.Source == as.Source &&
		f.Workload == as.Workload && f.Workspace == as.Workspace && f.DeploymentTarget == as.DeploymentTarget &&
		f.ClusterType == as.ClusterType && f.ConfigVersion == as.ConfigVersion && f.OwnerLabel == as.OwnerLabel &&
		slices.Equal(f.Policies, as.Policies) && slices.Equal(f.Objects, as.Objects) &&
		slices.Equal(f.Manifests.Texts(), as.Manifests.Texts())
}

func (r hostRecord) hasSameNames(as hostRecord) bool {
	return slices.Equal(r.Formerly, as.Formerly) && slices.Equal(r.OwnerFormerly, as.OwnerFormerly)
}

func (r hostRecord) renames(host string) folder.Renames {
	renames := folder.Renames{}
	for _, name := range r.Formerly {
		renames[name] = host
	}
	return renames
}

// addNames adds former names, except the owner's present name and present names of hosts.
func (r *hostRecord) addNames(hosts, owners []string, own string, isHost func(name string) bool) {
	merge := func(to *[]string, names []string, drop func(name string) bool) {
		merged := slices.DeleteFunc(slices.Concat(*to, names), drop)
		slices.Sort(merged)
		*to = slices.Compact(merged)
	}
	merge(&r.Formerly, hosts, isHost)
	merge(&r.OwnerFormerly, owners, func(name string) bool { return name == "" || name == own })
}

func (r hostRecord) hasSameFolders(as hostRecord) bool {
	return maps.EqualFunc(r.DeploymentTargets, as.DeploymentTargets, func(a, b folderRecord) bool {
		return strings.EqualFold(a.Tree, b.Tree)
	})
}

// encode writes a record canonically, for readable diffs. encoding/json would take as long for the records of many hosts as
// the rest of an apply.
func (r hostRecord) encode() []byte {
	targets := slices.Sorted(maps.Keys(r.DeploymentTargets))
	return r.encodeFolders(make([]byte, 0, 64+400*len(targets)), targets,
		func(target string) folderRecord { return r.DeploymentTargets[target] })
}

func (r hostRecord) encodeFolders(b []byte, targets []string, folder func(target string) folderRecord) []byte {
	b = appendHead(b, r.Format, r.Environment, r.Holder)
	b = appendList(b, "  ", "formerly", r.Formerly, appendText)
	b = appendList(b, "  ", "owner_formerly", r.OwnerFormerly, appendText)
	b = append(b, `  "deployment_targets": {`...)
	for i, target := range targets {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, "\n    "...)
		b = appendText(b, target)
		b = folder(target).encode(append(b, ": {\n"...))
		b = append(b, "    }"...)
	}
	if len(targets) > 0 {
		b = append(b, "\n  "...)
	}
	return append(r.more.encode(append(b, '}'), "  "), "\n}\n"...)
}

func appendHead(b []byte, format int, environment, holder string) []byte {
	b = fmt.Appendf(b, "{\n  \"format\": %d,\n", format)
	if environment != "" {
		b = appendMember(b, "  ", "environment", environment, ",\n")
	}
	if holder != "" {
		b = appendMember(b, "  ", "holder", holder, ",\n")
	}
	return b
}

func (f folderRecord) encode(b []byte) []byte {
	const indent = "      "
	b = appendMember(b, indent, "workload", f.Workload, ",\n")
	if f.Workspace != "" {
		b = appendMember(b, indent, "workspace", f.Workspace, ",\n")
	}
	b = appendMember(b, indent, "deployment_target", f.DeploymentTarget, ",\n")
	if f.ClusterType != "" {
		b = appendMember(b, indent, "cluster_type", f.ClusterType, ",\n")
	}
	b = appendList(b, indent, "policies", f.Policies, appendText)
	if f.ConfigVersion != "" {
		b = appendMember(b, indent, "config_version", f.ConfigVersion, ",\n")
	}
	if f.OwnerLabel != "" {
		b = appendMember(b, indent, "owner_label", f.OwnerLabel, ",\n")
	}
	b = appendList(b, indent, "objects", f.Objects, appendObject)
	if f.Manifests != nil {
		b = append(appendManifests(append(b, indent...), f.Manifests), ",\n"...)
	}
	b = appendMember(b, indent, "tree", f.Tree, "")
	if f.TreeBefore != "" {
		b = appendMember(append(b, ",\n"...), indent, "tree_before", f.TreeBefore, "")
	}
	if f.Changed != "" {
		b = appendMember(append(b, ",\n"...), indent, "changed", f.Changed, "")
	}
	if f.Source != "" {
		b = appendMember(append(b, ",\n"...), indent, "source", string(f.Source), "")
	}
	return append(f.more.encode(b, indent), '\n')
}

func (f fields) encode(b []byte, indent string) []byte {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		b = append(append(b, ",\n"...), indent...)
		b = append(appendText(b, name), ": "...)
		var value bytes.Buffer // indenting would grow with the square of the depth
		_ = json.Compact(&value, f[name])
		b = append(b, value.Bytes()...)
	}
	return b
}

func findMember(encoded []byte, name string) string {
	_, value, _ := bytes.Cut(encoded, []byte(`"`+name+`": "`))
	value, _, _ = bytes.Cut(value, []byte(`"`))
	return string(value)
}

func appendMember(b []byte, indent, name, value, end string) []byte {
	b = append(b, indent...)
	b = append(b, '"')
	b = append(b, name...)
	b = append(b, `": `...)
	return append(appendText(b, value), end...)
}

func appendList[T any](b []byte, indent, name string, values []T, value func([]byte, T) []byte) []byte {
	if len(values) == 0 {
		return b
	}
	b = append(append(b, indent...), '"')
	b = append(append(b, name...), `": [`...)
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = value(append(append(append(b, '\n'), indent...), "  "...), v)
	}
	return append(append(append(b, '\n'), indent...), "],\n"...)
}

// The members in order.
var (
	manifestsMembers = []string{"storage", "repo", "branch", "tag", "commit", "path", "chart", "version", "digest"}
	pinMembers       = []string{"commit", "version", "digest"}
)

func appendManifests(b []byte, m *folder.Manifests) []byte {
	texts := m.Texts()
	b = appendMembers(append(b, `"manifests": {`...), manifestsMembers, texts, 2)
	if m.Pin != (folder.Pin{}) {
		b = appendMembers(append(b, `, "pin": {`...), pinMembers, texts[len(manifestsMembers):], 0)
		b = append(b, '}')
	}
	return append(b, '}')
}

// appendMembers appends the members with a value, and always the first ones.
func appendMembers(b []byte, names, values []string, always int) []byte {
	separator := ""
	for i, name := range names {
		if i >= always && values[i] == "" {
			continue
		}
		b = appendMember(append(b, separator...), "", name, values[i], "")
		separator = ", "
	}
	return b
}

func appendObject(b []byte, o folder.ObjectRef) []byte {
	b = appendMember(append(b, '{'), "", "kind", o.Kind, ", ")
	if o.Namespace != "" {
		b = appendMember(b, "", "namespace", o.Namespace, ", ")
	}
	return appendMember(b, "", "name", o.Name, "}")
}

func compareObjects(a, b folder.ObjectRef) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

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
	_ = encoder.Encode(text) // strings always encode
	return append(b, bytes.TrimSuffix(quoted.Bytes(), []byte("\n"))...)
}

// parseRecord parses a record by anybody with push access. It checks names like paths, so a record never causes changes
// outside its host's folder.
func parseRecord(content []byte) (hostRecord, error) {
	if err := checkBounds(content, maxRecord); err != nil {
		return hostRecord{}, err
	}
	var r hostRecord
	// A record that encodes to the same bytes has no unknown members.
	err := json.Unmarshal(content, &r)
	if err != nil || !bytes.Equal(r.encode(), content) {
		r, err = parseFields(content)
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return hostRecord{}, fmt.Errorf("the record is not valid: %w", err)
	}
	return r, nil
}

// check rejects invalid names and texts, and drops other invalid values.
func (r hostRecord) check() error {
	if err := folder.CheckText(r.Environment, r.Holder); err != nil {
		return err
	}
	for _, host := range r.Formerly {
		if err := cmp.Or(checkHost(host), folder.CheckText(host)); err != nil {
			return err
		}
	}
	for _, owner := range r.OwnerFormerly {
		if err := cmp.Or(git.CheckName(owner), folder.CheckText(owner)); err != nil {
			return err
		}
	}
	for target, recorded := range r.DeploymentTargets {
		_, noTree := git.ParseID(recorded.Tree)
		if err := cmp.Or(git.CheckName(target), folder.CheckText(recorded.listTexts()...), noTree); err != nil {
			return err
		}
		if recorded.dropInvalid() {
			r.DeploymentTargets[target] = recorded
		}
	}
	return nil
}

func (f *folderRecord) dropInvalid() (changed bool) {
	if _, err := git.ParseID(f.TreeBefore); err != nil && f.TreeBefore != "" {
		f.TreeBefore, changed = "", true
	}
	if _, err := time.Parse(time.RFC3339, f.Changed); err != nil && f.Changed != "" {
		f.Changed, changed = "", true
	}
	if source := folder.ParseSource(string(f.Source)); source != f.Source {
		f.Source, changed = source, true
	}
	return changed
}

func parseFields(content []byte) (hostRecord, error) {
	var r hostRecord
	var targets map[string]fields
	if err := r.more.readHead(content, &r.Format, &r.Environment, &r.Holder, "deployment_targets", &targets); err != nil {
		return hostRecord{}, err
	}
	if err := cmp.Or(r.more.takeMember("formerly", &r.Formerly), r.more.takeMember("owner_formerly", &r.OwnerFormerly)); err != nil {
		return hostRecord{}, err
	}
	r.DeploymentTargets = make(map[string]folderRecord, len(targets))
	for _, target := range slices.Sorted(maps.Keys(targets)) {
		f := folderRecord{more: targets[target]}
		known := f.knownMembers()
		for _, name := range slices.Sorted(maps.Keys(known)) {
			// A newer format may use optional members for something else.
			text := f.more[name]
			if err := f.more.takeMember(name, known[name]); err != nil && (r.Format <= recordFormat || name == "tree") {
				return hostRecord{}, fmt.Errorf("%q: %w", target, err)
			} else if err != nil {
				f.more[name] = text
			}
		}
		r.DeploymentTargets[target] = f
	}
	return r, nil
}

func (f *folderRecord) knownMembers() map[string]any {
	return map[string]any{
		"workload": &f.Workload, "workspace": &f.Workspace, "deployment_target": &f.DeploymentTarget, "cluster_type": &f.ClusterType,
		"policies": &f.Policies, "config_version": &f.ConfigVersion,
		"owner_label": &f.OwnerLabel, "objects": &f.Objects, "tree": &f.Tree, "tree_before": &f.TreeBefore, "changed": &f.Changed,
		"manifests": &f.Manifests, "source": &f.Source,
	}
}

func (f *folderRecord) unknownMembers() fields {
	if f.more == nil {
		return nil
	}
	unknown, known := maps.Clone(f.more), f.knownMembers()
	maps.DeleteFunc(unknown, func(name string, _ json.RawMessage) bool { return known[name] != nil })
	return unknown
}

func (f *fields) readHead(content []byte, format *int, environment, holder *string, name string, value any) error {
	if err := json.Unmarshal(content, f); err != nil {
		return err
	}
	err := cmp.Or(f.takeMember("format", format), f.takeMember("environment", environment), f.takeMember("holder", holder))
	if err = cmp.Or(err, f.takeMember(name, value)); err != nil {
		return err
	}
	if *format < 1 {
		return errors.New("it has no format, or one below 1")
	}
	return nil
}

func (f fields) takeMember(name string, value any) error {
	text, ok := f[name]
	if !ok {
		return nil
	}
	delete(f, name)
	if err := json.Unmarshal(text, value); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
