package folder

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Record is what a GitOps repository keeps of a folder: why it is there, and what is in it.
type Record struct {
	Workload string `json:"workload"`
	// Workspace owns the workload.
	Workspace        string `json:"workspace,omitempty"`
	DeploymentTarget string `json:"deployment_target"`
	// ClusterType is the cluster type of a host that is a cluster; "" on others.
	ClusterType   string   `json:"cluster_type,omitempty"`
	Policies      []string `json:"policies,omitempty"`
	ConfigVersion string   `json:"config_version,omitempty"`
	// OwnerLabel is the owner's name in the labels of what is rendered, where that
	// is another one than its own: the name under which it was written first.
	OwnerLabel string `json:"owner_label,omitempty"`
	// Objects are the reconciler objects in the folder.
	Objects []ObjectRef `json:"objects,omitempty"`
	// Manifests are those of the deployment target, which records may share; nil where the record does not say.
	Manifests *Manifests `json:"manifests,omitempty"`
}

// Manifests says where the manifests of a deployment target are, in the words of the deployment target.
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
	// Pin is what they were resolved to; the zero value where they are not pinned.
	Pin Pin `json:"pin,omitzero"`
}

// Pin is what never changes: the content of manifests that move, as it was when they were resolved.
type Pin struct {
	Commit  string `json:"commit,omitempty"`  // of Git: the full id, in hex
	Version string `json:"version,omitempty"` // the exact version of a chart or an OCI artifact, or its tag
	Digest  string `json:"digest,omitempty"`  // "sha256:<hex>": of an OCI artifact's manifest, or of a chart's archive
}

// Revision is the version, tag, commit or branch, whichever there is; "" where all of them are left to the agent. Of a
// branch or a range of versions that is pinned, it is the commit or the version.
func (m *Manifests) Revision() string {
	if m == nil {
		return ""
	}
	return cmp.Or(m.Tag, m.Pin.Version, m.Version, m.Pin.Commit, m.Commit, m.Branch, m.Digest)
}

// Pinned are the manifests with what their pin says in place of what moves: commit, version and digest. A tag stays beside
// its commit or digest, for those who read it.
func (m Manifests) Pinned() (_ Manifests, digest string) {
	m.Commit = cmp.Or(m.Pin.Commit, m.Commit)
	if m.Tag == "" {
		m.Version = cmp.Or(m.Pin.Version, m.Version)
	}
	return m, cmp.Or(m.Pin.Digest, m.Digest)
}

// Texts are all that a record has of them; nil for nil.
func (m *Manifests) Texts() []string {
	if m == nil {
		return nil
	}
	return []string{
		m.Storage,
		m.Repo,
		m.Branch,
		m.Tag,
		m.Commit,
		m.Path,
		m.Chart,
		m.Version,
		m.Digest,
		m.Pin.Commit,
		m.Pin.Version,
		m.Pin.Digest,
	}
}

// Source is the commit from which a folder was made, of the repository that has the configuration of Terraform, as
// "<URL>@<commit>"; "" for none. It is the value of the trailer Flotilla-Source.
type Source string

// ParseSource reads a source; "" where the text is none.
func ParseSource(text string) Source {
	if source := Source(text); source.URL() != "" && IsCommit(source.Commit()) {
		return source
	}
	return ""
}

// URL is that of the repository.
func (s Source) URL() string { return string(s[:max(strings.LastIndexByte(string(s), '@'), 0)]) }

// Commit is the full id of the commit, in hex.
func (s Source) Commit() string { return string(s[strings.LastIndexByte(string(s), '@')+1:]) }

// Short is the source with the first digits of the commit, for people.
func (s Source) Short() string { return string(s[:len(s)-max(len(s.Commit())-12, 0)]) }

// IsCommit says whether a text is the full id of a commit of Git: 40 or 64 digits in hex.
func IsCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// MaxText bounds each text in a record, in bytes: names of Kubernetes have 253 at most.
const MaxText = 1024

// CheckText finds a text that no record has: too long, or with what steers a terminal or hides.
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

// ObjectRef names an object of Kubernetes; of all clusters, without a namespace.
type ObjectRef struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}
