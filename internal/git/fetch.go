package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// fetchStep is a way to fetch; the first fetches least. When a server answers one
// with an error, the next is tried.
type fetchStep int

const (
	// topTrees: the top levels of trees and no blob, then single objects by id.
	topTrees fetchStep = iota
	// treesByDepth: the same with the blobs that these levels have.
	treesByDepth
	// allTrees: every tree of the tip, no blob but those asked for by id.
	allTrees
	// everything: the tip with all its blobs.
	everything
)

// String is what a log says.
func (s fetchStep) String() string {
	return [...]string{"trees by depth and objects by id", "trees by depth with their files", "all trees", "everything"}[s]
}

// fetcher fetches objects of one repository, and keeps them.
type fetcher struct {
	wire         wire // nil when the repository does not exist
	objects      map[Hash]Object
	capabilities *capability.List // none when the repository is empty or does not exist
	references   map[string]Hash
	step         fetchStep
	gaveIDs      bool // the server has given single objects by id
	log          Logger
}

// newFetcher returns a fetcher without objects. advertised is nil when the repository is empty or does not exist.
func newFetcher(w wire, advertised *packp.AdvRefs, log Logger) *fetcher {
	f := &fetcher{wire: w, objects: map[Hash]Object{}, capabilities: capability.NewList(), log: log}
	if advertised != nil {
		f.references, f.capabilities = advertised.References, advertised.Capabilities
	}
	f.step = f.firstStep()
	return f
}

func (f *fetcher) firstStep() fetchStep {
	switch {
	case !f.capabilities.Supports(capability.Filter):
		return everything
	case f.takesIDs():
		return topTrees
	default:
		return allTrees
	}
}

// takesIDs reports whether the server gives single objects by id: it has done so,
// or it advertises it. Servers with uploadpack.allowAnySHA1InWant advertise both
// of these.
func (f *fetcher) takesIDs() bool {
	return f.gaveIDs || f.capabilities.Supports(capability.AllowReachableSHA1InWant) &&
		f.capabilities.Supports(capability.AllowTipSHA1InWant)
}

// mayTakeIDs reports whether the server may be asked for single objects by id.
// Azure Repos gives people's git the files that their partial clones lack, and
// advertises no more than this; see capabilities.go.
func (f *fetcher) mayTakeIDs() bool {
	return f.takesIDs() || f.capabilities.Supports(capability.Filter) && f.capabilities.Supports(capability.AllowTipSHA1InWant)
}

// mayStepDown reports whether the next step might succeed after this error. A
// server's 500 is one such error.
func mayStepDown(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (Classify(err) == nil || Transient(err))
}

func (t *Tip) fetchCommit(ctx context.Context, levels int) error {
	if err := t.fetch(ctx, t.shallow(t.Commit, 1, levels)); err != nil {
		return err
	}
	if _, ok := t.objects[t.Commit]; !ok {
		return errors.New("the server did not send the commit")
	}
	t.whole = t.step == everything
	return nil
}

// inSteps asks, and asks again for more while the server answers with an error.
func (f *fetcher) inSteps(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil || f.step == everything || !mayStepDown(ctx, err) {
			return err
		}
		f.stepDown(ctx, f.step+1, err)
	}
}

// filter leaves out what the step can: files, and the trees below so many levels.
func (f *fetcher) filter(levels int) packp.Filter {
	trees := packp.FilterTreeDepth(uint64(levels))
	switch f.step {
	case everything:
		return ""
	case allTrees:
		return packp.FilterBlobNone()
	case topTrees:
		if levels > 0 {
			return packp.FilterCombine(packp.FilterBlobNone(), trees)
		}
	case treesByDepth:
	}
	return trees
}

// shallow asks for a commit and those before it, so many of each line of them, or all where the server cannot give fewer.
func (f *fetcher) shallow(commit Hash, depth, levels int) *packp.UploadPackRequest {
	request := f.request([]Hash{commit}, levels)
	if f.capabilities.Supports(capability.Shallow) {
		_ = request.Capabilities.Set(capability.Shallow)
		request.Depth = packp.DepthCommits(depth)
	}
	return request
}

// request asks for objects, and for the trees that they refer to down to so many levels, as far as the step leaves out others.
func (f *fetcher) request(wants []Hash, levels int) *packp.UploadPackRequest {
	request := packp.NewUploadPackRequest()
	request.Wants, request.Filter = wants, f.filter(levels)
	for _, wanted := range []capability.Capability{capability.OFSDelta, capability.NoProgress} {
		if f.capabilities.Supports(wanted) {
			_ = request.Capabilities.Set(wanted)
		}
	}
	// Nothing is negotiated: no request lists objects that we have, and the answer
	// is "NAK" with and without these. Some servers insist on one of them.
	switch {
	case f.capabilities.Supports(capability.MultiACKDetailed):
		_ = request.Capabilities.Set(capability.MultiACKDetailed)
	case f.capabilities.Supports(capability.MultiACK):
		_ = request.Capabilities.Set(capability.MultiACK)
	}
	switch {
	case f.capabilities.Supports(capability.Sideband64k):
		_ = request.Capabilities.Set(capability.Sideband64k)
	case f.capabilities.Supports(capability.Sideband):
		_ = request.Capabilities.Set(capability.Sideband)
	}
	if f.step != everything {
		_ = request.Capabilities.Set(capability.Filter)
	}
	return request
}

// fetch tries once more after a dropped connection or a busy server, before it
// takes the next step, which may fetch the whole repository.
func (f *fetcher) fetch(ctx context.Context, request *packp.UploadPackRequest) error {
	return f.fetchInto(ctx, request, f.objects)
}

func (f *fetcher) fetchInto(ctx context.Context, request *packp.UploadPackRequest, objects map[Hash]Object) error {
	read := func(r io.Reader) error { return ReadPack(demultiplexed(request.Capabilities, r, nil), objects) }
	began, before := time.Now(), len(objects)
	err := f.wire.fetch(ctx, request, read)
	if err != nil && ctx.Err() == nil && Transient(err) {
		f.log(ctx, "a fetch failed and is tried again", map[string]any{"error": err})
		err = f.wire.fetch(ctx, request, read)
	}
	if err == nil {
		f.log(ctx, "fetched", map[string]any{
			"wanted": len(request.Wants), "filter": string(request.Filter), "objects": len(objects) - before, "took": time.Since(began),
		})
	}
	return err
}

// stepDown changes to a step that fetches more.
func (f *fetcher) stepDown(ctx context.Context, to fetchStep, err error) {
	fields := map[string]any{"from": f.step.String(), "to": to.String()}
	if err != nil {
		fields["error"] = err
	}
	f.log(ctx, "the server does not answer so small a request; fetching more", fields)
	f.step = to
}

// wantsPerRequest bounds one request for objects by id: 32,768 are 1.6 MB,
// above which proxies begin to object.
const wantsPerRequest = 32 << 10

// Need makes sure that the objects are here, in as few requests as possible.
func (t *Tip) Need(ctx context.Context, ids []Hash) error {
	missing := t.lacks(ids)
	if all, err := t.tryIDs(ctx, missing); all || err != nil {
		return err
	}
	if t.Commit.IsZero() && len(missing) > 0 {
		return fmt.Errorf("its branch %w", ErrNoBranch)
	}
	for !t.whole {
		// The last step may have been taken for another commit.
		t.stepDown(ctx, min(max(t.step+1, allTrees), everything), nil)
		err := t.fetchCommit(ctx, 0)
		if err != nil && (t.step == everything || !mayStepDown(ctx, err)) {
			return err
		}
		if err == nil && t.has(missing) {
			return nil
		}
	}
	return errors.New("the server did not send objects that the branch consists of")
}

// Deepen fetches the upper levels of the commit's trees, counted from 1, the root
// tree, and no file, in one request. Like NeedBelow it is for callers that know
// that they will need them.
func (t *Tip) Deepen(ctx context.Context, levels int) error {
	if t.Commit.IsZero() || t.step != topTrees {
		return nil
	}
	if err := t.fetchCommit(ctx, levels); err != nil && !mayStepDown(ctx, err) {
		return err
	}
	return nil
}

// NeedBelow fetches trees with so many levels of trees below them, counted from
// the trees themselves, and no file, in one request. It is for callers that know
// that they will need these levels. Where the server cannot leave files out, it
// does nothing, and Need fetches what is missing.
func (t *Tip) NeedBelow(ctx context.Context, ids []Hash, levels int) error {
	missing := t.lacks(ids)
	if len(missing) == 0 || t.step != topTrees || len(missing) > wantsPerRequest {
		return nil
	}
	if err := t.fetch(ctx, t.request(missing, levels)); err != nil && !mayStepDown(ctx, err) {
		return err
	}
	return nil
}

// tryIDs fetches objects by their ids, where the server may be asked for that, and reports whether it gave all of them.
func (f *fetcher) tryIDs(ctx context.Context, missing []Hash) (all bool, err error) {
	switch {
	case len(missing) == 0:
		return true, nil
	case f.step == everything || !f.mayTakeIDs():
		return false, nil
	}
	if err := f.fetchIDs(ctx, missing); err != nil {
		if mayStepDown(ctx, err) {
			return false, nil
		}
		return false, err
	}
	return f.gaveIDs, nil
}

func (f *fetcher) fetchIDs(ctx context.Context, missing []Hash) error {
	for wants := range slices.Chunk(missing, wantsPerRequest) {
		// Objects that are asked for by id come whatever the filter says; the
		// filter keeps out what they refer to. Encoding sorts them.
		if err := f.fetch(ctx, f.request(slices.Clone(wants), 0)); err != nil {
			return err
		}
	}
	f.gaveIDs = f.has(missing)
	return nil
}

func (f *fetcher) has(ids []Hash) bool {
	return !slices.ContainsFunc(ids, func(id Hash) bool { return !f.Has(id) })
}

// lacks are those of the objects that are not here, in order.
func (f *fetcher) lacks(ids []Hash) []Hash {
	missing := slices.DeleteFunc(slices.Clone(ids), f.Has)
	slices.SortFunc(missing, func(a, b Hash) int { return bytes.Compare(a[:], b[:]) })
	return slices.Compact(missing)
}
