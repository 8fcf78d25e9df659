package gitops

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Memory is the branch main of a repository in memory, for tests that do more
// than processes can. What it stores has to be checked by git.
type Memory struct {
	objects map[plumbing.Hash]object
	tip     plumbing.Hash
	filters bool
}

// NewMemory returns an empty repository, whose server can filter or cannot.
func NewMemory(filters bool) *Memory {
	return &Memory{objects: map[plumbing.Hash]object{}, filters: filters}
}

// WithMemory makes a client reach it by every http URL.
func WithMemory(m *Memory) Option {
	return func(c *Client) { c.overWeb = m }
}

// NewUploadPackSession makes it a transport.Transport.
func (m *Memory) NewUploadPackSession(*transport.Endpoint, transport.AuthMethod) (transport.UploadPackSession, error) {
	return &memorySession{Memory: m}, nil
}

// NewReceivePackSession makes it a transport.Transport.
func (m *Memory) NewReceivePackSession(*transport.Endpoint, transport.AuthMethod) (transport.ReceivePackSession, error) {
	return &memorySession{Memory: m}, nil
}

type memorySession struct {
	*Memory
	transport.Session // of which nothing else is called
}

func (s *memorySession) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	advertised := packp.NewAdvRefs()
	capabilities := []capability.Capability{capability.ReportStatus}
	if s.filters {
		capabilities = append(capabilities, capability.Filter, capability.AllowReachableSHA1InWant, capability.AllowTipSHA1InWant)
	}
	for _, c := range capabilities {
		if err := advertised.Capabilities.Set(c); err != nil {
			return nil, err
		}
	}
	if s.tip.IsZero() {
		return nil, transport.ErrEmptyRemoteRepository
	}
	return advertised, advertised.AddReference(plumbing.NewHashReference(refName("main"), s.tip))
}

func (s *memorySession) UploadPack(_ context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	depth, blobs := maxDepth, request.Filter == ""
	filter, err := url.QueryUnescape(strings.ReplaceAll(string(request.Filter), "+", "%2B"))
	if err != nil {
		return nil, err
	}
	if _, text, ok := strings.Cut(filter, "tree:"); ok {
		if _, err := fmt.Sscan(text, &depth); err != nil {
			return nil, err
		}
	}
	w := newPackWriter()
	for _, id := range request.Wants {
		s.send(w, id, depth, blobs)
	}
	return packp.NewUploadPackResponseWithPackfile(request, io.NopCloser(bytes.NewReader(w.finish()))), nil
}

// send writes an object, and so many levels of trees of what it refers to.
func (m *Memory) send(w *packWriter, id plumbing.Hash, levels int, blobs bool) {
	o := m.objects[id]
	w.add(id, o.kind, o.content)
	if levels == 0 {
		return
	}
	switch o.kind {
	case plumbing.CommitObject:
		head, _ := parseCommitHead(o.content)
		m.send(w, head.tree, levels-1, blobs)
	case plumbing.TreeObject:
		entries, _ := parseTree(o.content)
		for _, e := range entries {
			if e.isTree() || blobs {
				m.send(w, e.id, levels-1, blobs)
			}
		}
	}
}

func (s *memorySession) ReceivePack(_ context.Context, request *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	command := request.Commands[0]
	report := packp.NewReportStatus()
	report.UnpackStatus = "ok"
	status := &packp.CommandStatus{ReferenceName: command.Name, Status: "ok"}
	report.CommandStatuses = []*packp.CommandStatus{status}
	if command.Old != s.tip {
		status.Status = "fetch first"
		return report, report.Error()
	}
	if err := readPack(request.Packfile, s.objects); err != nil {
		return nil, err
	}
	s.tip = command.New
	return report, nil
}

// Files are the tip's files with their content.
func (m *Memory) Files() map[string]string {
	files := map[string]string{}
	m.each(func(name string, e entry) { files[name] = string(m.objects[e.id].content) })
	return files
}

func (m *Memory) each(yield func(name string, e entry)) {
	if m.tip.IsZero() {
		return
	}
	head, _ := parseCommitHead(m.objects[m.tip].content)
	var walk func(at string, id plumbing.Hash)
	walk = func(at string, id plumbing.Hash) {
		entries, _ := parseTree(m.objects[id].content)
		for _, e := range entries {
			if e.isTree() {
				walk(at+e.name+"/", e.id)
			} else {
				yield(at+e.name, e)
			}
		}
	}
	walk("", head.tree)
}

// Commit makes a person's commit of these files, and no others.
func (m *Memory) Commit(files map[string]string) {
	top := &directory{loaded: true}
	w := &workspace{tip: &tip{objects: m.objects}, top: top}
	for name, content := range files {
		id := newHasher().object(plumbing.BlobObject, []byte(content))
		m.objects[id] = object{plumbing.BlobObject, []byte(content)}
		if err := w.put(name, modeFile, id); err != nil {
			panic(err)
		}
	}
	root := w.write(func(id plumbing.Hash, content []byte) { m.objects[id] = object{plumbing.TreeObject, content} })
	text := fmt.Sprintf("tree %s\n", root)
	if !m.tip.IsZero() {
		text += fmt.Sprintf("parent %s\n", m.tip)
	}
	text += "author A <a@example.com> 0 +0000\ncommitter A <a@example.com> 0 +0000\n\nby hand\n"
	m.tip = newHasher().object(plumbing.CommitObject, []byte(text))
	m.objects[m.tip] = object{plumbing.CommitObject, []byte(text)}
}

// Tree is the id of the tip's tree; "" when the branch does not exist.
func (m *Memory) Tree() string {
	if m.tip.IsZero() {
		return ""
	}
	head, _ := parseCommitHead(m.objects[m.tip].content)
	return head.tree.String()
}

// Import tells git fast-import to make a commit of the tip's files.
func (m *Memory) Import(w io.Writer) {
	_, _ = io.WriteString(w, "commit refs/heads/check\ncommitter A <a@example.com> 0 +0000\ndata 0\ndeleteall\n")
	m.each(func(name string, e entry) { fmt.Fprintf(w, "M %s %s %s\n", e.mode, e.id, name) })
}

// Pack is everything in some repositories.
func Pack(repositories []*Memory) []byte {
	w := newPackWriter()
	for _, m := range repositories {
		for id, o := range maps.All(m.objects) {
			w.add(id, o.kind, o.content)
		}
	}
	return w.finish()
}

// Blobs is how many blobs were fetched for a view.
func (v *View) Blobs() (n int) {
	for _, o := range v.work.objects {
		if o.kind == plumbing.BlobObject {
			n++
		}
	}
	return n
}
