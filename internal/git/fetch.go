package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// fetchStep is a way to fetch. After an error of the server, the next, larger one is tried.
type fetchStep int

const (
	// topTrees fetches the top levels of trees, then single objects by id.
	topTrees fetchStep = iota
	// allTrees fetches every tree, and blobs by id.
	allTrees
	// everything fetches all objects of the tip.
	everything
)

func (s fetchStep) String() string {
	return [...]string{"trees by depth and objects by id", "all trees", "everything"}[s]
}

type fetcher struct {
	objectStore
	wire         wire             // nil if the repository does not exist
	capabilities *capability.List // empty if there is no repository or no commit
	references   map[string]Hash
	step         fetchStep
	gaveIDs      bool // by id
	log          Logger
}

// newFetcher takes nil for an empty or missing repository.
func newFetcher(w wire, advertised *packp.AdvRefs, log Logger) *fetcher {
	f := &fetcher{wire: w, objectStore: objectStore{}, capabilities: capability.NewList(), log: log}
	if advertised != nil {
		f.references, f.capabilities = advertised.References, advertised.Capabilities
	}
	switch {
	case !f.capabilities.Supports(capability.Filter):
		f.step = everything
	case !f.takesIDs():
		f.step = allTrees
	}
	return f
}

// takesIDs reports whether the server gives single objects by id. uploadpack.allowAnySHA1InWant advertises both capabilities.
func (f *fetcher) takesIDs() bool {
	return f.gaveIDs || f.capabilities.Supports(capability.AllowReachableSHA1InWant) &&
		f.capabilities.Supports(capability.AllowTipSHA1InWant)
}

// mayTakeIDs includes Azure Repos, which gives files by id without advertising it; see the end of wire.go.
func (f *fetcher) mayTakeIDs() bool {
	return f.takesIDs() || f.capabilities.Supports(capability.Filter) && f.capabilities.Supports(capability.AllowTipSHA1InWant)
}

// mayStepDown reports whether the next step may succeed, for example after a 500.
func mayStepDown(ctx context.Context, err error) bool {
	return ctx.Err() == nil && (Classify(err) == nil || Transient(err))
}

func (t *Tip) fetchCommit(ctx context.Context, levels int) error {
	if err := t.fetch(ctx, t.shallow(t.from, t.depth, levels)); err != nil {
		return err
	}
	if _, ok := t.objectStore[t.Commit]; !ok {
		return errors.New("the server did not send the commit")
	}
	t.next = t.step + 1
	return nil
}

// inSteps repeats a request with larger steps while the server answers with errors.
func (f *fetcher) inSteps(ctx context.Context, ask func() error) error {
	for {
		err := ask()
		if err == nil || f.step == everything || !mayStepDown(ctx, err) {
			return err
		}
		f.stepDown(ctx, f.step+1, err)
	}
}

func (f *fetcher) filter(levels int) packp.Filter {
	trees := packp.FilterTreeDepth(uint64(levels))
	switch {
	case f.step == everything:
		return ""
	case f.step == allTrees:
		return packp.FilterBlobNone()
	case levels > 0:
		return packp.FilterCombine(packp.FilterBlobNone(), trees)
	}
	return trees
}

// shallow requests history to a depth, or all of it if the server has no shallow fetches.
func (f *fetcher) shallow(commit Hash, depth, levels int) *packp.UploadPackRequest {
	request := f.request([]Hash{commit}, levels)
	if f.capabilities.Supports(capability.Shallow) {
		_ = request.Capabilities.Set(capability.Shallow)
		request.Depth = packp.DepthCommits(depth)
	}
	return request
}

func (f *fetcher) request(wants []Hash, levels int) *packp.UploadPackRequest {
	request := packp.NewUploadPackRequest()
	request.Wants, request.Filter = wants, f.filter(levels)
	for _, choices := range [][]capability.Capability{
		{capability.OFSDelta},
		{capability.NoProgress},
		// Requests list no objects that we have, so the answer is "NAK" either way. Some servers require one of these.
		{capability.MultiACKDetailed, capability.MultiACK},
		{capability.Sideband64k, capability.Sideband},
	} {
		if best := slices.IndexFunc(choices, f.capabilities.Supports); best >= 0 {
			_ = request.Capabilities.Set(choices[best])
		}
	}
	if f.step != everything {
		_ = request.Capabilities.Set(capability.Filter)
	}
	return request
}

// fetch retries once, because the next step may fetch the whole repository.
func (f *fetcher) fetch(ctx context.Context, request *packp.UploadPackRequest) error {
	return f.fetchInto(ctx, request, f.objectStore)
}

func (f *fetcher) fetchInto(ctx context.Context, request *packp.UploadPackRequest, objects map[Hash]RawObject) error {
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

func (f *fetcher) stepDown(ctx context.Context, to fetchStep, err error) {
	fields := map[string]any{"from": f.step.String(), "to": to.String()}
	if err != nil {
		fields["error"] = err
	}
	f.log(ctx, "the server does not answer so small a request; fetching more", fields)
	f.step = to
}

// wantsPerRequest ids are 1.6 MB. Proxies begin to object above that.
const wantsPerRequest = 32 << 10

// Need fetches missing objects of the commit in as few requests as possible.
func (t *Tip) Need(ctx context.Context, ids []Hash) error {
	missing := t.missing(ids)
	if all, err := t.tryIDs(ctx, missing); all || err != nil {
		return err
	}
	if t.Commit.IsZero() && len(missing) > 0 {
		return fmt.Errorf("its branch %w", ErrNoBranch)
	}
	for step := max(t.step, t.next, allTrees); step <= everything; step++ {
		t.stepDown(ctx, step, nil)
		err := t.fetchCommit(ctx, 0)
		if err != nil && (t.step == everything || !mayStepDown(ctx, err)) {
			return err
		}
		if err == nil && len(t.missing(missing)) == 0 {
			return nil
		}
	}
	return errors.New("the server did not send objects that the branch consists of")
}

// Deepen fetches the upper levels of trees, counted from 1, the root, without files, in one request.
func (t *Tip) Deepen(ctx context.Context, levels int) error {
	if t.Commit.IsZero() || t.step != topTrees {
		return nil
	}
	if err := t.fetchCommit(ctx, levels); err != nil && !mayStepDown(ctx, err) {
		return err
	}
	return nil
}

// NeedBelow fetches trees and levels below them, without files, in one request, or nothing if the server cannot omit files.
func (t *Tip) NeedBelow(ctx context.Context, ids []Hash, levels int) error {
	missing := t.missing(ids)
	if len(missing) == 0 || t.step != topTrees || len(missing) > wantsPerRequest {
		return nil
	}
	if err := t.fetch(ctx, t.request(missing, levels)); err != nil && !mayStepDown(ctx, err) {
		return err
	}
	return nil
}

// tryIDs requests objects by id, and reports whether all came.
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
	for {
		for wants := range slices.Chunk(missing, wantsPerRequest) {
			// Objects by id come regardless of the filter, which excludes their children. Encoding sorts the ids.
			if err := f.fetch(ctx, f.request(slices.Clone(wants), 0)); err != nil {
				return err
			}
		}
		// Git omits a wanted tree that is in another wanted tree, so these come with the next request.
		rest := f.missing(missing)
		f.gaveIDs = len(rest) == 0
		if f.gaveIDs || len(rest) == len(missing) {
			return nil
		}
		missing = rest
	}
}
