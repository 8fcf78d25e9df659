package gittest

import (
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

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Memory is a repository in memory with the branch main, for tests with more load than processes can take. Git has to check its
// content.
type Memory struct {
	objects map[git.Hash]git.RawObject
	tip     git.Hash
	filters bool
}

// NewMemory returns an empty repository, whose server can filter or cannot. A
// client that is given it as git.ConnectorOptions.Transport reaches it by every http URL.
func NewMemory(filters bool) *Memory {
	return &Memory{objects: map[git.Hash]git.RawObject{}, filters: filters}
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
	transport.Session // only this method is called
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
	return advertised, advertised.AddReference(plumbing.NewHashReference(plumbing.NewBranchReferenceName("main"), s.tip))
}

func (s *memorySession) UploadPack(_ context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	depth, blobs := git.MaxDepth, request.Filter == ""
	filter, err := url.QueryUnescape(strings.ReplaceAll(string(request.Filter), "+", "%2B"))
	if err != nil {
		return nil, err
	}
	if _, text, ok := strings.Cut(filter, "tree:"); ok {
		if _, err := fmt.Sscan(text, &depth); err != nil {
			return nil, err
		}
	}
	w := git.NewPack()
	for _, id := range request.Wants {
		if !s.leadTo(request.Haves, id) {
			send(s.object, w, id, depth, blobs)
		}
	}
	return packp.NewUploadPackResponseWithPackfile(request, io.NopCloser(w.Reader())), nil
}

// leadTo reports whether one of the commits is, or has in its history, another.
func (m *Memory) leadTo(commits []git.Hash, id git.Hash) bool {
	for _, commit := range commits {
		head, _ := git.ParseCommitHead(m.objects[commit].Content)
		if commit == id || m.leadTo(head.Parents, id) {
			return true
		}
	}
	return false
}

func (m *Memory) object(id git.Hash) git.RawObject { return m.objects[id] }

// send writes an object, and a number of levels of the trees that it refers to.
func send(object func(git.Hash) git.RawObject, w *git.Pack, id git.Hash, levels int, blobs bool) {
	o := object(id)
	w.Add(id, o)
	if levels == 0 {
		return
	}
	switch o.Kind {
	case plumbing.CommitObject:
		head, _ := git.ParseCommitHead(o.Content)
		send(object, w, head.Tree, levels-1, blobs)
	case plumbing.TreeObject:
		entries, _ := git.ParseTree(o.Content)
		for _, e := range entries {
			if e.IsTree() || blobs {
				send(object, w, e.ID, levels-1, blobs)
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
	if err := git.ReadPack(request.Packfile, s.objects); err != nil {
		return nil, err
	}
	s.tip = command.New
	return report, nil
}

// Files are the tip's files with their content.
func (m *Memory) Files() map[string]string {
	files := map[string]string{}
	m.each(func(name string, e git.Entry) { files[name] = string(m.objects[e.ID].Content) })
	return files
}

func (m *Memory) each(yield func(name string, e git.Entry)) {
	if m.tip.IsZero() {
		return
	}
	head, _ := git.ParseCommitHead(m.objects[m.tip].Content)
	var walk func(at string, id git.Hash)
	walk = func(at string, id git.Hash) {
		entries, _ := git.ParseTree(m.objects[id].Content)
		for _, e := range entries {
			if e.IsTree() {
				walk(at+e.Name+"/", e.ID)
			} else {
				yield(at+e.Name, e)
			}
		}
	}
	walk("", head.Tree)
}

// Commit makes a person's commit of these files, and no others.
func (m *Memory) Commit(files map[string]string) {
	w := (&git.Tip{}).Tree()
	for name, content := range files {
		id := git.NewHasher().Blob([]byte(content))
		m.objects[id] = git.RawObject{Kind: plumbing.BlobObject, Content: []byte(content)}
		if err := w.Put(name, git.ModeFile, id); err != nil {
			panic(err)
		}
	}
	root := w.Write(func(id git.Hash, content []byte) {
		m.objects[id] = git.RawObject{Kind: plumbing.TreeObject, Content: content}
	})
	text := fmt.Sprintf("tree %s\n", root)
	if !m.tip.IsZero() {
		text += fmt.Sprintf("parent %s\n", m.tip)
	}
	text += "author A <a@example.com> 0 +0000\ncommitter A <a@example.com> 0 +0000\n\nby hand\n"
	m.tip = plumbing.ComputeHash(plumbing.CommitObject, []byte(text))
	m.objects[m.tip] = git.RawObject{Kind: plumbing.CommitObject, Content: []byte(text)}
}

// Tree is the id of the tip's tree; "" when the branch does not exist.
func (m *Memory) Tree() string {
	if m.tip.IsZero() {
		return ""
	}
	head, _ := git.ParseCommitHead(m.objects[m.tip].Content)
	return head.Tree.String()
}

// Import tells git fast-import to make a commit of the tip's files.
func (m *Memory) Import(w io.Writer) {
	_, _ = io.WriteString(w, "commit refs/heads/check\ncommitter A <a@example.com> 0 +0000\ndata 0\ndeleteall\n")
	m.each(func(name string, e git.Entry) { fmt.Fprintf(w, "M %s %s %s\n", e.Mode, e.ID, name) })
}

// Pack is everything in some repositories.
func Pack(repositories []*Memory) []byte {
	w := git.NewPack()
	for _, m := range repositories {
		for id, o := range maps.All(m.objects) {
			w.Add(id, o)
		}
	}
	pack, _ := io.ReadAll(w.Reader()) // it is in memory
	return pack
}
