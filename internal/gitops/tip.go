package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// rung is a way to fetch, the most sparing first. A server that answers a rung
// with an error is asked again a rung lower.
type rung int

const (
	// topTrees: the top levels of trees and no blob, then single objects by id.
	topTrees rung = iota
	// treesByDepth: the same with the blobs that these levels have.
	treesByDepth
	// allTrees: every tree of the tip, no blob but those asked for by id.
	allTrees
	// everything: the tip with all its blobs.
	everything
)

// tip is one commit of a branch, with as many of its objects as somebody needed.
type tip struct {
	wire         wire
	commit       plumbing.Hash // zero when the branch does not exist
	root         plumbing.Hash // its tree; zero when the branch does not exist
	objects      map[plumbing.Hash]object
	capabilities *capability.List // nil when the repository is empty
	references   map[string]plumbing.Hash
	rung         rung
}

// openTip reads where the branch is, and the upper levels of its trees.
// levels counts from 1, the root tree.
func openTip(ctx context.Context, w wire, branch string, levels int) (*tip, error) {
	commit, advertised, err := branchTip(ctx, w, branch)
	if err != nil {
		return nil, err
	}
	t := &tip{wire: w, commit: commit, objects: map[plumbing.Hash]object{}}
	if advertised != nil {
		t.references = advertised.References
	}
	if advertised == nil || commit.IsZero() {
		w.close()
		return t, nil
	}
	t.capabilities = advertised.Capabilities
	t.rung = t.firstRung()
	for {
		err := t.fetchCommit(ctx, levels)
		if err == nil {
			break
		}
		if t.rung == everything || !mayStepDown(ctx, err) {
			return nil, fmt.Errorf("branch %q cannot be fetched: %w", branch, err)
		}
		t.rung++
	}
	if err := t.readRoot(); err != nil {
		return nil, fmt.Errorf("branch %q: %w", branch, err)
	}
	return t, nil
}

func (t *tip) firstRung() rung {
	switch {
	case !t.capabilities.Supports(capability.Filter):
		return everything
	case t.takesIDs():
		return topTrees
	default:
		return allTrees
	}
}

// takesIDs reports whether the server may give single objects by id. Servers
// with uploadpack.allowAnySHA1InWant advertise both of these.
func (t *tip) takesIDs() bool {
	return t.capabilities.Supports(capability.AllowReachableSHA1InWant) &&
		t.capabilities.Supports(capability.AllowTipSHA1InWant)
}

// mayStepDown tells an answer that a lower rung might change, a server's 500
// among them, from one that it cannot.
func mayStepDown(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (classify(err) == nil || passing(err))
}

func (t *tip) fetchCommit(ctx context.Context, levels int) error {
	request := t.request([]plumbing.Hash{t.commit})
	if t.capabilities.Supports(capability.Shallow) {
		_ = request.Capabilities.Set(capability.Shallow)
		request.Depth = packp.DepthCommits(1)
	}
	switch t.rung {
	case topTrees:
		request.Filter = packp.FilterCombine(packp.FilterBlobNone(), packp.FilterTreeDepth(uint64(levels)))
	case treesByDepth:
		request.Filter = packp.FilterTreeDepth(uint64(levels))
	case allTrees:
		request.Filter = packp.FilterBlobNone()
	case everything:
	}
	if err := t.fetch(ctx, request); err != nil {
		return err
	}
	if _, ok := t.objects[t.commit]; !ok {
		return errors.New("the server did not send the commit")
	}
	return nil
}

func (t *tip) request(wants []plumbing.Hash) *packp.UploadPackRequest {
	request := packp.NewUploadPackRequest()
	request.Wants = wants
	for _, wanted := range []capability.Capability{capability.OFSDelta, capability.NoProgress} {
		if t.capabilities.Supports(wanted) {
			_ = request.Capabilities.Set(wanted)
		}
	}
	switch {
	case t.capabilities.Supports(capability.Sideband64k):
		_ = request.Capabilities.Set(capability.Sideband64k)
	case t.capabilities.Supports(capability.Sideband):
		_ = request.Capabilities.Set(capability.Sideband)
	}
	if t.rung != everything {
		_ = request.Capabilities.Set(capability.Filter)
	}
	return request
}

// fetch asks once more before a connection that was dropped, or a server that
// was busy, costs a rung: the next one may be the whole repository.
func (t *tip) fetch(ctx context.Context, request *packp.UploadPackRequest) error {
	return t.fetchInto(ctx, request, t.objects)
}

func (t *tip) fetchInto(ctx context.Context, request *packp.UploadPackRequest, objects map[plumbing.Hash]object) error {
	read := func(r io.Reader) error { return readPack(packStream(request, r), objects) }
	err := t.wire.fetch(ctx, request, read)
	if err != nil && ctx.Err() == nil && passing(err) {
		err = t.wire.fetch(ctx, request, read)
	}
	return err
}

func (t *tip) readRoot() error {
	commit := t.objects[t.commit]
	if commit.kind != plumbing.CommitObject {
		return errors.New("its tip is not a commit")
	}
	head, err := parseCommitHead(commit.content)
	if err != nil {
		return fmt.Errorf("its tip %w", err)
	}
	t.root = head.tree
	return nil
}

// wantsPerRequest bounds one request for objects by id: 32,768 are 1.6 MB,
// above which proxies begin to object.
const wantsPerRequest = 32 << 10

// need makes sure that the objects are here, in as few requests as possible.
func (t *tip) need(ctx context.Context, ids []plumbing.Hash) error {
	missing := make([]plumbing.Hash, 0, len(ids))
	for _, id := range ids {
		if _, ok := t.objects[id]; !ok && id != emptyTree {
			missing = append(missing, id)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.SortFunc(missing, func(a, b plumbing.Hash) int { return bytes.Compare(a[:], b[:]) })
	missing = slices.Compact(missing)

	if t.capabilities == nil {
		return errors.New("an object of an empty repository was asked for")
	}
	if t.rung != everything && t.takesIDs() {
		err := t.fetchIDs(ctx, missing)
		if err == nil && t.has(missing) {
			return nil
		}
		if err != nil && !mayStepDown(ctx, err) {
			return err
		}
	}
	for t.rung != everything {
		t.rung = max(t.rung+1, allTrees)
		err := t.fetchCommit(ctx, 0)
		if err != nil && !mayStepDown(ctx, err) {
			return err
		}
		if err == nil && t.has(missing) {
			return nil
		}
	}
	return errors.New("the server did not send objects that the branch consists of")
}

func (t *tip) fetchIDs(ctx context.Context, missing []plumbing.Hash) error {
	for wants := range slices.Chunk(missing, wantsPerRequest) {
		request := t.request(slices.Clone(wants)) // encoding sorts them
		// What is asked for by id comes whatever the filter says; of what it
		// refers to, nothing shall.
		request.Filter = packp.FilterTreeDepth(0)
		if t.rung == allTrees {
			request.Filter = packp.FilterBlobNone()
		}
		if err := t.fetch(ctx, request); err != nil {
			return err
		}
	}
	return nil
}

func (t *tip) has(ids []plumbing.Hash) bool {
	for _, id := range ids {
		if _, ok := t.objects[id]; !ok {
			return false
		}
	}
	return true
}

// tree reads a tree that is here.
func (t *tip) tree(id plumbing.Hash) ([]entry, error) {
	if id == emptyTree {
		return nil, nil
	}
	o, ok := t.objects[id]
	if !ok {
		return nil, fmt.Errorf("tree %s was not fetched", id)
	}
	if o.kind != plumbing.TreeObject {
		return nil, errMalformedTree
	}
	return parseTree(o.content)
}

// blob reads a blob that is here.
func (t *tip) blob(id plumbing.Hash) ([]byte, error) {
	o, ok := t.objects[id]
	if !ok || o.kind != plumbing.BlobObject {
		return nil, fmt.Errorf("blob %s was not fetched", id)
	}
	return o.content, nil
}
