package folder

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Record describes a folder in a GitOps repository.
type Record struct {
	Workload         string   `json:"workload"`
	Workspace        string   `json:"workspace,omitempty"`
	DeploymentTarget string   `json:"deployment_target"`
	ClusterType      string   `json:"cluster_type,omitempty"`
	Policies         []string `json:"policies,omitempty"`
	ConfigVersion    string   `json:"config_version,omitempty"`
	// OwnerLabel is the owner's name at the first write, in the labels of rendered objects; "" for its own.
	OwnerLabel string      `json:"owner_label,omitempty"`
	Objects    []ObjectRef `json:"objects,omitempty"`
	// Manifests may be shared; nil if the record has none.
	Manifests *Manifests `json:"manifests,omitempty"`
}

// Manifests locates the manifests of a deployment target.
type Manifests struct {
	Storage string `json:"storage"` // "git", "helm" or "oci"
	Repo    string `json:"repo"`
	Branch  string `json:"branch,omitempty"`
	Tag     string `json:"tag,omitempty"`
	Commit  string `json:"commit,omitempty"`
	Path    string `json:"path,omitempty"`
	Chart   string `json:"chart,omitempty"`
	Version string `json:"version,omitempty"`
	Digest  string `json:"digest,omitempty"` // of an OCI artifact
	Pin     Pin    `json:"pin,omitzero"`
}

// Pin is the immutable content that moving manifests resolved to.
type Pin struct {
	Commit  string `json:"commit,omitempty"`  // full id in hex
	Version string `json:"version,omitempty"` // exact version of a chart or OCI artifact, or its tag
	Digest  string `json:"digest,omitempty"`  // "sha256:<hex>" of an OCI manifest or a chart's archive
}

// Revision returns the version, tag, commit or branch, pinned if possible; "" if the agent chooses.
func (m *Manifests) Revision() string {
	if m == nil {
		return ""
	}
	return cmp.Or(m.Tag, m.Pin.Version, m.Version, m.Pin.Commit, m.Commit, m.Branch, m.Digest)
}

// Pinned returns the pinned manifests and digest. A tag stays, for readers.
func (m Manifests) Pinned() (_ Manifests, digest string) {
	m.Commit = cmp.Or(m.Pin.Commit, m.Commit)
	if m.Tag == "" {
		m.Version = cmp.Or(m.Pin.Version, m.Version)
	}
	return m, cmp.Or(m.Pin.Digest, m.Digest)
}

// Texts returns all texts of the manifests; nil for nil.
func (m *Manifests) Texts() []string {
	if m == nil {
		return nil
	}
	return []string{
		m.Storage, m.Repo, m.Branch, m.Tag, m.Commit, m.Path, m.Chart, m.Version, m.Digest,
		m.Pin.Commit, m.Pin.Version, m.Pin.Digest,
	}
}

// Source is the commit of the Terraform configuration, as "<URL>@<commit>" in the trailer Flotilla-Source.
type Source string

// ParseSource parses a source; "" if the text is invalid.
func ParseSource(text string) Source {
	if source := Source(text); source.URL() != "" && IsCommit(source.Commit()) {
		return source
	}
	return ""
}

// URL returns the repository of the source.
func (s Source) URL() string { return string(s[:max(strings.LastIndexByte(string(s), '@'), 0)]) }

// Commit returns the full commit id in hex.
func (s Source) Commit() string { return string(s[strings.LastIndexByte(string(s), '@')+1:]) }

// Short returns the source with an abbreviated commit.
func (s Source) Short() string { return string(s[:len(s)-max(len(s.Commit())-12, 0)]) }

// IsCommit reports whether a text is a full Git commit id: 40 or 64 hex digits.
func IsCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// MaxText bounds each text in a record, in bytes. Kubernetes names have at most 253.
const MaxText = 1024

// CheckText rejects texts that are too long, steer a terminal or are invisible.
func CheckText(texts ...string) error {
	for _, text := range texts {
		if len(text) > MaxText {
			return fmt.Errorf("%.40q… is longer than %d bytes", text, MaxText)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || r == utf8.RuneError }) {
			return fmt.Errorf("%.80q has a character that is not shown", text)
		}
	}
	return nil
}

// ObjectRef names a Kubernetes object.
type ObjectRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}
