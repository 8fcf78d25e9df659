package gittest

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// store is a repository that a session serves, on disk or in memory.
type store interface {
	references(*packp.AdvRefs) error

	// object returns zero for a missing object.
	object(git.Hash) git.RawObject

	// receive stores a pack, then moves a reference as a compare-and-swap.
	receive(pack io.Reader, command *packp.Command) error
}

// session serves a repository without processes.
type session struct {
	store
	shallow, filters, ids bool // capabilities
	tipsOnly              bool // refuses requests by ID
}

func (s *session) advertise() (*packp.AdvRefs, error) {
	advertised := packp.NewAdvRefs()
	for name, has := range map[capability.Capability]bool{
		capability.ReportStatus: true, capability.Shallow: s.shallow, capability.Filter: s.filters,
		capability.AllowReachableSHA1InWant: s.ids, capability.AllowTipSHA1InWant: s.ids,
	} {
		if !has {
			continue
		}
		if err := advertised.Capabilities.Set(name); err != nil {
			return nil, err
		}
	}
	return advertised, s.references(advertised)
}

func (s *session) upload(request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	current := packp.NewAdvRefs()
	if err := s.references(current); err != nil {
		return nil, err
	}
	tips := slices.Concat(slices.Collect(maps.Values(current.References)), slices.Collect(maps.Values(current.Peeled)))
	for _, id := range request.Wants {
		if s.object(id).Kind == plumbing.InvalidObject || s.tipsOnly && !slices.Contains(tips, id) {
			return nil, &pktline.ErrorLine{Text: "upload-pack: not our ref " + id.String()}
		}
	}
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
	isNew := func(commit git.Hash) bool { seen := sent[commit]; sent[commit] = true; return !seen }
	for _, id := range request.Haves {
		walkHistory(s.store, id, 1<<30, isNew)
	}
	omitted := map[git.Hash]bool{}
	for _, id := range request.Wants {
		if s.object(id).Kind != plumbing.CommitObject {
			if !omitted[id] {
				send(s.store, w, id, levels, blobs, omitted)
			}
			continue
		}
		walkHistory(s.store, id, generations, func(commit git.Hash) bool {
			if !isNew(commit) {
				return false
			}
			send(s.store, w, commit, levels, blobs, omitted)
			return true
		})
	}
	return packp.NewUploadPackResponseWithPackfile(request, io.NopCloser(w.Reader())), nil
}

func (s *session) push(request *packp.ReferenceUpdateRequest) *packp.ReportStatus {
	command := request.Commands[0]
	report := packp.NewReportStatus()
	report.UnpackStatus = "ok"
	status := &packp.CommandStatus{ReferenceName: command.Name, Status: "ok"}
	report.CommandStatuses = []*packp.CommandStatus{status}
	if err := s.receive(request.Packfile, command); err != nil {
		status.Status = err.Error()
	}
	return report
}

func walkHistory(from store, id git.Hash, generations int, visit func(git.Hash) bool) {
	if generations == 0 {
		return
	}
	commit := from.object(id)
	if commit.Content == nil || !visit(id) {
		return
	}
	head, _ := git.ParseCommitHead(commit.Content)
	for _, parent := range head.Parents {
		walkHistory(from, parent, generations-1, visit)
	}
}

// send writes an object and levels of its trees. As in git, a filter omits even wanted entries.
func send(from store, w *git.Pack, id git.Hash, levels int, blobs bool, omitted map[git.Hash]bool) {
	o := from.object(id)
	w.Add(id, o)
	switch o.Kind {
	case plumbing.CommitObject:
		if levels > 0 {
			head, _ := git.ParseCommitHead(o.Content)
			send(from, w, head.Tree, levels-1, blobs, omitted)
		}
	case plumbing.TreeObject:
		entries, _ := git.ParseTree(o.Content)
		for _, e := range entries {
			if levels > 0 && (e.IsTree() || blobs) {
				send(from, w, e.ID, levels-1, blobs, omitted)
			} else {
				omitted[e.ID] = true
			}
		}
	}
}
