package gitops

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

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

func (f folderRecord) toPublic() FolderRecord {
	changed, _ := time.Parse(time.RFC3339, f.Changed) // checked by parseRecord
	return FolderRecord{Record: f.Record, Tree: f.Tree, TreeBefore: f.TreeBefore, Changed: changed, Source: f.Source}
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

// join adds the folders and names of another record.
func (r hostRecord) join(other hostRecord) hostRecord {
	for target, recorded := range other.DeploymentTargets {
		if _, has := r.DeploymentTargets[target]; !has {
			r.DeploymentTargets[target] = recorded
		}
	}
	r.Formerly = slices.Concat(r.Formerly, other.Formerly)
	r.OwnerFormerly = slices.Concat(r.OwnerFormerly, other.OwnerFormerly)
	return r
}

func (r hostRecord) hasSameFolders(as hostRecord) bool {
	return maps.EqualFunc(r.DeploymentTargets, as.DeploymentTargets, func(a, b folderRecord) bool {
		return strings.EqualFold(a.Tree, b.Tree)
	})
}

// encode writes a record canonically, for readable diffs.
func (r hostRecord) encode() []byte {
	targets := slices.Sorted(maps.Keys(r.DeploymentTargets))
	return r.encodeFolders(make([]byte, 0, 64+400*len(targets)), targets,
		func(target string) folderRecord { return r.DeploymentTargets[target] })
}

func (r hostRecord) encodeFolders(b []byte, targets []string, folder func(target string) folderRecord) []byte {
	b = appendHead(b, r.Format, r.Environment, r.Holder)
	b = appendList(b, "\n  ", "formerly", r.Formerly, appendText)
	b = appendList(b, "\n  ", "owner_formerly", r.OwnerFormerly, appendText)
	b = append(appendName(b, "\n  ", "deployment_targets"), '{')
	for _, target := range targets {
		b = folder(target).encode(appendName(b, "\n    ", target))
	}
	if len(targets) > 0 {
		b = append(b, "\n  "...)
	}
	return append(r.more.encode(append(b, '}'), "\n  "), "\n}\n"...)
}

func (f folderRecord) encode(b []byte) []byte {
	const line = "\n      "
	b = appendMember(append(b, '{'), line, "workload", f.Workload)
	b = appendOptional(b, line, "workspace", f.Workspace)
	b = appendMember(b, line, "deployment_target", f.DeploymentTarget)
	b = appendOptional(b, line, "cluster_type", f.ClusterType)
	b = appendList(b, line, "policies", f.Policies, appendText)
	b = appendOptional(b, line, "config_version", f.ConfigVersion)
	b = appendOptional(b, line, "owner_label", f.OwnerLabel)
	b = appendList(b, line, "objects", f.Objects, appendObject)
	if f.Manifests != nil {
		b = appendManifests(appendName(b, line, "manifests"), f.Manifests)
	}
	b = appendMember(b, line, "tree", f.Tree)
	b = appendOptional(b, line, "tree_before", f.TreeBefore)
	b = appendOptional(b, line, "changed", f.Changed)
	b = appendOptional(b, line, "source", string(f.Source))
	return append(f.more.encode(b, line), "\n    }"...)
}

func appendObject(b []byte, o folder.ObjectRef) []byte {
	b = appendMember(append(b, '{'), inline, "kind", o.Kind)
	b = appendOptional(b, inline, "namespace", o.Namespace)
	return append(appendMember(b, inline, "name", o.Name), '}')
}

func appendManifests(b []byte, m *folder.Manifests) []byte {
	b = appendMember(append(b, '{'), inline, "storage", m.Storage)
	b = appendMember(b, inline, "repo", m.Repo)
	b = appendOptional(b, inline, "branch", m.Branch)
	b = appendOptional(b, inline, "tag", m.Tag)
	b = appendOptional(b, inline, "commit", m.Commit)
	b = appendOptional(b, inline, "path", m.Path)
	b = appendOptional(b, inline, "chart", m.Chart)
	b = appendOptional(b, inline, "version", m.Version)
	b = appendOptional(b, inline, "digest", m.Digest)
	if m.Pin != (folder.Pin{}) {
		b = append(appendName(b, inline, "pin"), '{')
		b = appendOptional(b, inline, "commit", m.Pin.Commit)
		b = appendOptional(b, inline, "version", m.Pin.Version)
		b = append(appendOptional(b, inline, "digest", m.Pin.Digest), '}')
	}
	return append(b, '}')
}

func compareObjects(a, b folder.ObjectRef) int {
	return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
}

func findMember(encoded []byte, name string) string {
	_, value, _ := bytes.Cut(encoded, []byte(`"`+name+`": "`))
	value, _, _ = bytes.Cut(value, []byte(`"`))
	return string(value)
}

// parseRecord parses a record by anybody with push access. It checks names like paths, so a record never causes changes
// outside its host's folder.
func parseRecord(content []byte) (hostRecord, error) {
	if err := checkBounds(content, maxRecord); err != nil {
		return hostRecord{}, err
	}
	var r hostRecord
	err := json.Unmarshal(content, &r)
	switch {
	case r.Format > recordFormat && errors.As(err, new(*json.UnmarshalTypeError)):
		r, err = parseNewer(content)
	case err == nil && !bytes.Equal(r.encode(), content): // it may have unknown members
		err = r.readUnknown(content)
	}
	if r.DeploymentTargets == nil {
		r.DeploymentTargets = map[string]folderRecord{}
	}
	if err == nil {
		err = r.check()
	}
	if err != nil {
		return hostRecord{}, fmt.Errorf("the record is not valid: %w", err)
	}
	return r, nil
}

var hostMembers, folderMembers = memberNames(reflect.TypeFor[hostRecord]()), memberNames(reflect.TypeFor[folderRecord]())

func (r *hostRecord) readUnknown(content []byte) error {
	var all struct {
		DeploymentTargets map[string]fields `json:"deployment_targets"`
	}
	if err := cmp.Or(json.Unmarshal(content, &r.more), json.Unmarshal(content, &all)); err != nil {
		return err
	}
	r.more.drop(hostMembers...)
	for target, recorded := range r.DeploymentTargets {
		recorded.more = all.DeploymentTargets[target]
		recorded.more.drop(folderMembers...)
		r.DeploymentTargets[target] = recorded
	}
	return nil
}

// parseNewer parses a record of a newer format, which may use optional members of folders for something else. Those survive
// like unknown ones.
func parseNewer(content []byte) (hostRecord, error) {
	var all struct {
		hostRecord
		DeploymentTargets map[string]fields `json:"deployment_targets"`
	}
	r := &all.hostRecord
	if err := cmp.Or(json.Unmarshal(content, &all), json.Unmarshal(content, &r.more)); err != nil {
		return hostRecord{}, err
	}
	r.more.drop(hostMembers...)
	r.DeploymentTargets = make(map[string]folderRecord, len(all.DeploymentTargets))
	for target, members := range all.DeploymentTargets {
		recorded := folderRecord{more: members}
		for _, name := range folderMembers {
			value, ok := members[name]
			if !ok {
				continue
			}
			read := recorded
			err := json.Unmarshal(fmt.Appendf(nil, "{%q: %s}", name, value), &read)
			if err != nil && name == "tree" {
				return hostRecord{}, err
			}
			if err == nil {
				recorded = read
				delete(members, name)
			}
		}
		r.DeploymentTargets[target] = recorded
	}
	return *r, nil
}

// check rejects invalid names and texts, and drops other invalid values.
func (r hostRecord) check() error {
	if err := cmp.Or(checkFormat(r.Format), folder.CheckText(r.Environment, r.Holder)); err != nil {
		return err
	}
	for _, host := range r.Formerly {
		if err := checkHost(host); err != nil {
			return err
		}
	}
	for _, owner := range r.OwnerFormerly {
		if err := git.CheckName(owner); err != nil {
			return err
		}
	}
	for target, recorded := range r.DeploymentTargets {
		_, noTree := git.ParseID(recorded.Tree)
		if err := cmp.Or(git.CheckName(target), folder.CheckText(recorded.listTexts()...), noTree); err != nil {
			return err
		}
		if _, err := git.ParseID(recorded.TreeBefore); err != nil {
			recorded.TreeBefore = ""
		}
		if _, err := time.Parse(time.RFC3339, recorded.Changed); err != nil {
			recorded.Changed = ""
		}
		recorded.Source = folder.ParseSource(string(recorded.Source))
		r.DeploymentTargets[target] = recorded
	}
	return nil
}

// The append functions write JSON with indented members, for readable diffs. encoding/json would take as long for the records
// of many hosts as the rest of an apply. Their line separates members: a line break with indentation, or inline.
const inline = " "

func appendHead(b []byte, format int, environment, holder string) []byte {
	b = strconv.AppendInt(appendName(append(b, '{'), "\n  ", "format"), int64(format), 10)
	b = appendOptional(b, "\n  ", "environment", environment)
	return appendOptional(b, "\n  ", "holder", holder)
}

// appendName begins a member.
func appendName(b []byte, line, name string) []byte {
	isFirst := b[len(b)-1] == '{'
	if !isFirst {
		b = append(b, ',')
	}
	if !isFirst || line != inline {
		b = append(b, line...)
	}
	return append(appendText(b, name), ": "...)
}

func appendMember(b []byte, line, name, value string) []byte {
	return appendText(appendName(b, line, name), value)
}

func appendOptional(b []byte, line, name, value string) []byte {
	if value == "" {
		return b
	}
	return appendMember(b, line, name, value)
}

// appendList appends a member with a line for each value, if there are any.
func appendList[T any](b []byte, line, name string, values []T, appendValue func([]byte, T) []byte) []byte {
	if len(values) == 0 {
		return b
	}
	b = append(appendName(b, line, name), '[')
	for i, value := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendValue(append(append(b, line...), "  "...), value)
	}
	return append(append(b, line...), ']')
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

// fields are members that this version does not know.
type fields map[string]json.RawMessage

func (f fields) encode(b []byte, line string) []byte {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		var value bytes.Buffer // indenting would grow with the square of the depth
		_ = json.Compact(&value, f[name])
		b = append(appendName(b, line, name), value.Bytes()...)
	}
	return b
}

// drop removes known members. encoding/json ignores the case of their names.
func (f fields) drop(known ...string) {
	maps.DeleteFunc(f, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(known, func(member string) bool { return strings.EqualFold(member, name) })
	})
}

func memberNames(of reflect.Type) (names []string) {
	for _, field := range reflect.VisibleFields(of) {
		if name, _, _ := strings.Cut(field.Tag.Get("json"), ","); name != "" {
			names = append(names, name)
		}
	}
	return names
}

func checkFormat(format int) error {
	if format < 1 {
		return errors.New("it has no format, or one below 1")
	}
	return nil
}

const (
	maxRecordDepth = 32
	// leastObject and leastValue are the smallest sizes in bytes that Flotilla writes. Records with smaller values take
	// many times their size in memory.
	leastObject, leastValue = 16, 4
)

// checkBounds rejects content that Flotilla never writes, before it is parsed. It allocates nothing.
func checkBounds(content []byte, limit int) error {
	if len(content) > limit {
		return fmt.Errorf("the record is longer than %d MiB", limit>>20)
	}
	if !utf8.Valid(content) {
		return errors.New("the record is not valid UTF-8")
	}
	depth, objects, values, inText := 0, 0, 0, false
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > maxRecordDepth {
				return fmt.Errorf("the record has more than %d levels", maxRecordDepth)
			}
			objects++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
	}
	if objects > 32+len(content)/leastObject || values > 32+len(content)/leastValue {
		return errors.New("the record has more values than any that Flotilla writes")
	}
	return nil
}

func (f folderRecord) listTexts() []string {
	texts := append([]string{f.Workload, f.Workspace, f.DeploymentTarget, f.ClusterType, f.ConfigVersion, f.OwnerLabel}, f.Policies...)
	for _, object := range f.Objects {
		texts = append(texts, object.Kind, object.Namespace, object.Name)
	}
	return append(append(texts, f.Manifests.Texts()...), string(f.Source))
}
