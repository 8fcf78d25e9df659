package gittest

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Host is a Git host in memory with any number of repositories, for tests with more load than processes can take. A client with
// it as git.ConnectorOptions.Transport reaches its repositories by http URLs with any host name: the path of the URL, without ".git" and a
// slash at the end, is the name of the repository. It is safe for concurrent use.
type Host struct {
	mu           sync.Mutex
	repositories map[string]*Repository
}

// Repository is a repository of a Host.
type Repository struct {
	host     *Host
	memory   *Memory // for its objects
	branches map[string]git.Hash
}

// NewHost returns a Git host without repositories.
func NewHost() *Host { return &Host{repositories: map[string]*Repository{}} }

// Create makes an empty repository. filters says whether its server can filter.
func (h *Host) Create(name string, filters bool) *Repository {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repositories[name] = &Repository{host: h, memory: NewMemory(filters), branches: map[string]git.Hash{}}
	return h.repositories[name]
}

// Alias gives a repository a second name.
func (h *Host) Alias(name string, repository *Repository) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.repositories[name] = repository
}

func (h *Host) at(endpoint *transport.Endpoint) (*Repository, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	repository, ok := h.repositories[strings.TrimSuffix(strings.Trim(endpoint.Path, "/"), ".git")]
	if !ok {
		return nil, transport.ErrRepositoryNotFound
	}
	return repository, nil
}

// NewUploadPackSession makes it a transport.Transport.
func (h *Host) NewUploadPackSession(endpoint *transport.Endpoint, _ transport.AuthMethod) (transport.UploadPackSession, error) {
	repository, err := h.at(endpoint)
	return &hostSession{Repository: repository, missing: err}, nil
}

// NewReceivePackSession makes it a transport.Transport.
func (h *Host) NewReceivePackSession(endpoint *transport.Endpoint, _ transport.AuthMethod) (transport.ReceivePackSession, error) {
	repository, err := h.at(endpoint)
	return &hostSession{Repository: repository, missing: err}, nil
}

type hostSession struct {
	*Repository
	transport.Session // only this method is called
	missing           error
}

// Close makes it a transport.Session.
func (s *hostSession) Close() error { return nil }

func (s *hostSession) AdvertisedReferencesContext(context.Context) (*packp.AdvRefs, error) {
	if s.missing != nil {
		return nil, s.missing
	}
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	advertised := packp.NewAdvRefs()
	capabilities := []capability.Capability{capability.ReportStatus, capability.Shallow}
	if s.memory.filters {
		capabilities = append(capabilities, capability.Filter, capability.AllowReachableSHA1InWant, capability.AllowTipSHA1InWant)
	}
	for _, c := range capabilities {
		if err := advertised.Capabilities.Set(c); err != nil {
			return nil, err
		}
	}
	if len(s.branches) == 0 {
		return nil, transport.ErrEmptyRemoteRepository
	}
	for _, name := range slices.Sorted(maps.Keys(s.branches)) {
		if err := advertised.AddReference(plumbing.NewHashReference(plumbing.NewBranchReferenceName(name), s.branches[name])); err != nil {
			return nil, err
		}
	}
	return advertised, nil
}

func (s *hostSession) UploadPack(_ context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	return answer(s.memory.object, request)
}

// answer sends the requested objects. A missing object has no content.
func answer(object func(git.Hash) git.RawObject, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	levels, blobs := 1<<30, request.Filter == ""
	filter, err := url.QueryUnescape(strings.ReplaceAll(string(request.Filter), "+", "%2B"))
	if err != nil {
		return nil, err
	}
	if _, text, ok := strings.Cut(filter, "tree:"); ok {
		if _, err := fmt.Sscan(text, &levels); err != nil {
			return nil, err
		}
	}
	generations := 1 << 30
	if depth, ok := request.Depth.(packp.DepthCommits); ok && depth > 0 {
		generations = int(depth)
	}
	w, sent := git.NewPack(), map[git.Hash]bool{}
	for _, id := range request.Haves {
		past(object, id, 1<<30, func(commit git.Hash) bool { seen := sent[commit]; sent[commit] = true; return !seen })
	}
	for _, id := range request.Wants {
		if object(id).Kind != plumbing.CommitObject {
			send(object, w, id, levels, blobs)
			continue
		}
		past(object, id, generations, func(commit git.Hash) bool {
			if sent[commit] {
				return false
			}
			sent[commit] = true
			send(object, w, commit, levels, blobs)
			return true
		})
	}
	return packp.NewUploadPackResponseWithPackfile(request, io.NopCloser(w.Reader())), nil
}

// past visits a commit and those before it, until visit returns false.
func past(object func(git.Hash) git.RawObject, id git.Hash, generations int, visit func(git.Hash) bool) {
	if generations == 0 {
		return
	}
	commit := object(id)
	if commit.Content == nil || !visit(id) {
		return
	}
	head, _ := git.ParseCommitHead(commit.Content)
	for _, parent := range head.Parents {
		past(object, parent, generations-1, visit)
	}
}

func (s *hostSession) ReceivePack(_ context.Context, request *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	s.host.mu.Lock()
	defer s.host.mu.Unlock()
	command := request.Commands[0]
	report := packp.NewReportStatus()
	report.UnpackStatus = "ok"
	status := &packp.CommandStatus{ReferenceName: command.Name, Status: "ok"}
	report.CommandStatuses = []*packp.CommandStatus{status}
	branch := command.Name.Short()
	if command.Old != s.branches[branch] {
		status.Status = "fetch first"
		return report, report.Error()
	}
	if err := git.ReadPack(request.Packfile, s.memory.objects); err != nil {
		return nil, err
	}
	s.branches[branch] = command.New
	return report, nil
}

// Branches are the names of the branches that there are.
func (r *Repository) Branches() []string {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	return slices.Sorted(maps.Keys(r.branches))
}

// Tip is the commit of a branch; the zero value where there is none.
func (r *Repository) Tip(branch string) git.Hash {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	return r.branches[branch]
}

// Commits counts the commits of a branch that another commit lacks; all of them for the zero value.
func (r *Repository) Commits(branch string, since git.Hash) int {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	known := map[git.Hash]bool{}
	visit := func(id git.Hash) bool { seen := known[id]; known[id] = true; return !seen }
	past(r.memory.object, since, 1<<30, visit)
	before := len(known)
	past(r.memory.object, r.branches[branch], 1<<30, visit)
	return len(known) - before
}

// Files are the files of a branch with their content.
func (r *Repository) Files(branch string) map[string]string {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	return r.view(branch).Files()
}

// Write makes a person's commit that leaves a branch with these files, and no others.
func (r *Repository) Write(branch string, files map[string]string) {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	view := r.view(branch)
	view.Commit(files)
	r.branches[branch] = view.tip
}

// view is one branch of the repository.
func (r *Repository) view(branch string) *Memory {
	return &Memory{objects: r.memory.objects, tip: r.branches[branch]}
}

// Pack is everything that the repository has, for git to check.
func (r *Repository) Pack() []byte {
	r.host.mu.Lock()
	defer r.host.mu.Unlock()
	return Pack([]*Memory{r.memory})
}
