package gitops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ErrClaimHeld reports a record of another holder.
var ErrClaimHeld = errors.New("the claim belongs to another Terraform state")

// ErrClaimUnreadable reports an unreadable record of another claim. Its clusters are unknown, so none is surely free.
var ErrClaimUnreadable = errors.New("the record of a claim cannot be read")

// ErrClaimTwice reports a cluster of two claims.
var ErrClaimTwice = errors.New("the records of two claims list one cluster")

// ClaimEdit is the target state of one claim. Author, Subject, Release and Run are as in an Edit.
type ClaimEdit struct {
	Name, Path string
	// FormerName is the claim's former name at the same path. Its record becomes the claim's in the same commit.
	FormerName  string
	Environment string
	// Holder is the new holder.
	Holder string
	// Holders are further holders whose records are the claim's own, such as "" for a record without one.
	Holders []string
	// Adopt takes over the record of any holder.
	Adopt bool
	// Choose returns the clusters for a tip, again after a lost race. nil removes the claim's own record.
	Choose  func(ClaimTip) ([]string, error)
	Author  git.Signature
	Subject string
	Release string
	Run     string
}

// ClaimTip has the claims of a tip as one claim sees them.
type ClaimTip struct {
	// Held are the clusters in the claim's own record, ordered by the time of taking.
	Held []string
	// Elsewhere maps the clusters of other claims to those claims.
	Elsewhere map[string]string
}

// ClaimResult is the outcome of WriteClaim.
type ClaimResult struct {
	ApplyResult
	Clusters []string
	// Record is the id of the record's blob in hex.
	Record string
	// IsForeign reports that the record to be removed stays: it belongs to another holder, or it is unreadable and the edit
	// has no Holders.
	IsForeign bool
}

// WriteClaim writes the choice of the edit into the claim's record, with one commit or none. The push is a compare-and-swap
// on the tip that Choose saw, so two claims never get the same cluster.
//
// Errors: see Apply, or ErrClaimHeld, ErrClaimUnreadable, ErrClaimTwice, or the error of Choose.
func (c *BranchClient) WriteClaim(ctx context.Context, remote git.Remote, edit ClaimEdit) (ClaimResult, error) {
	if err := cmp.Or(remote.Check(), edit.check()); err != nil {
		return ClaimResult{}, describeError(remote, err)
	}
	var claimed claimChange // of the last attempt
	result, err := c.write(ctx, remote, Edit{
		Owner:  Owner{Environment: edit.Environment, Path: edit.Path},
		Author: edit.Author, Subject: edit.Subject, Release: edit.Release, Run: edit.Run,
	}, func(ctx context.Context, w *layout, e Edit, now time.Time, _ *layout) (*change, error) {
		c := &change{edit: e}
		var err error
		claimed, err = edit.stage(ctx, w, c, now)
		return c, err
	})
	if err != nil {
		return ClaimResult{}, describeError(remote, err)
	}
	return ClaimResult{result, claimed.clusters, claimed.record, claimed.isForeign}, nil
}

func (e ClaimEdit) check() error {
	if err := CheckClaim(e.Name); err != nil {
		return fmt.Errorf("the claim's name: %w", err)
	}
	return cmp.Or(checkFormerName("claim", e.FormerName, e.Name, CheckClaim), checkClaimTexts(e.Environment, e.Holder),
		e.Author.Check(), checkMessageText(e.Subject, e.Release), folder.CheckText(e.Run), git.CheckPath(e.Path))
}

type claimChange struct {
	clusters        []string
	record          string
	taken, released []string
	formerly        string
	isRemoved       bool
	isForeign       bool
}

// stage adds the files of the claim and the texts of the message to a change.
func (e *ClaimEdit) stage(ctx context.Context, w *layout, c *change, now time.Time) (claimed claimChange, err error) {
	s, err := e.readTip(ctx, w)
	if err != nil {
		return claimed, err
	}
	switch {
	case e.Choose == nil && s.isOwn:
		claimed.isRemoved, claimed.released = true, s.own.Names()
		c.remove = append(c.remove, ClaimRecordPath(e.Path, e.Name))
	case e.Choose == nil:
		claimed.isForeign = s.exists
	case s.exists && !s.isOwn:
		return claimed, newCompleteError(fmt.Errorf(
			"%w: claim %q already has the record %s; use another name, or set adopt = true to take the claim over",
			ErrClaimHeld, e.Name, ClaimRecordPath(e.Path, e.Name)))
	default:
		if claimed, err = e.stageRecord(s, c, now); err != nil {
			return claimed, err
		}
	}
	c.isEmpty = len(c.put)+len(c.remove) == 0
	c.summary, c.body, c.trailer = claimed.subject("claim "+e.Name), claimed.body(), "Flotilla-Claim: "+e.Name
	return claimed, nil
}

func (e *ClaimEdit) stageRecord(s *claimsAtTip, c *change, now time.Time) (claimed claimChange, err error) {
	clusters, err := e.chooseClusters(s)
	if err != nil {
		return claimed, err
	}
	wanted := s.own.withClusters(clusters, now)
	wanted.Environment, wanted.Holder = e.Environment, e.Holder
	content := wanted.encode()
	id := git.NewHasher().Blob(content)
	claimed.clusters, claimed.record = clusters, id.String()
	claimed.taken, claimed.released = subtractNames(clusters, s.own.Names()), subtractNames(s.own.Names(), clusters)
	if !s.exists || s.id != id {
		c.put = append(c.put, putFile{path: ClaimRecordPath(e.Path, e.Name), id: id, content: content})
	}
	if s.isRenamed {
		claimed.formerly = e.FormerName
		c.remove = append(c.remove, ClaimRecordPath(e.Path, e.FormerName))
	}
	return claimed, nil
}

func (e *ClaimEdit) chooseClusters(s *claimsAtTip) ([]string, error) {
	for _, cluster := range s.own.Names() {
		if other, twice := s.elsewhere[cluster]; twice {
			claims := []string{s.own.Name, other}
			slices.Sort(claims)
			return nil, newCompleteError(fmt.Errorf("%w: %s", ErrClaimTwice, ClaimedTwice{Path: e.Path, Cluster: cluster, Claims: claims}))
		}
	}
	clusters, err := e.Choose(ClaimTip{Held: s.own.Names(), Elsewhere: s.elsewhere})
	if err != nil {
		return nil, newCompleteError(err)
	}
	if len(clusters) > MaxClaimed {
		return nil, fmt.Errorf("a claim may have %d clusters at most, and %d are wanted", MaxClaimed, len(clusters))
	}
	held := s.own.Names()
	for i, cluster := range clusters {
		if err := checkClusterName(cluster); err != nil {
			return nil, err
		}
		if slices.Contains(clusters[:i], cluster) {
			return nil, fmt.Errorf("cluster %q is wanted twice", cluster)
		}
		if other, taken := s.elsewhere[cluster]; taken {
			return nil, newCompleteError(fmt.Errorf("cluster %q belongs to claim %q", cluster, other))
		}
		if len(s.unreadable) > 0 && !slices.Contains(held, cluster) {
			return nil, newCompleteError(fmt.Errorf("%w, so that it is not known which clusters are free; repair or remove %s",
				ErrClaimUnreadable, wording.List(s.unreadable, wording.Named)))
		}
	}
	return clusters, nil
}

func subtractNames(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

type claimsAtTip struct {
	own        Claim    // under its name or else its former name
	id         git.Hash // of the record with the claim's name
	exists     bool
	isOwn      bool
	isRenamed  bool // it is under the former name
	elsewhere  map[string]string
	unreadable []string
}

func (e *ClaimEdit) readTip(ctx context.Context, w *layout) (*claimsAtTip, error) {
	entries, err := w.openClaims(ctx, e.Path)
	if err != nil {
		return nil, err
	}
	all, err := w.readClaims(ctx, e.Path, entries)
	if err != nil {
		return nil, err
	}
	s := &claimsAtTip{elsewhere: map[string]string{}}
	readable := map[string]Claim{}
	for _, claim := range all.Claims {
		readable[claim.Name] = claim
	}
	s.id, s.exists = entries[e.Name]
	s.isOwn = s.exists && (e.Adopt || e.isOwn(readable, e.Name))
	if _, moves := entries[e.FormerName]; moves && e.isOwn(readable, e.FormerName) {
		s.isRenamed, s.own = true, readable[e.FormerName]
	}
	if s.isOwn {
		s.own = readable[e.Name]
	}
	for _, claim := range all.Claims {
		if claim.Name == e.Name && s.isOwn || claim.Name == e.FormerName && s.isRenamed {
			continue
		}
		for _, cluster := range claim.Names() {
			s.elsewhere[cluster] = claim.Name
		}
	}
	s.unreadable = slices.DeleteFunc(all.Unreadable, func(at string) bool {
		return at == ClaimRecordPath(e.Path, e.Name) || s.isRenamed && at == ClaimRecordPath(e.Path, e.FormerName)
	})
	return s, nil
}

// isOwn reports whether a record is the claim's own. A claim with a holder replaces an unreadable one.
func (e *ClaimEdit) isOwn(readable map[string]Claim, name string) bool {
	claim, ok := readable[name]
	if !ok {
		return len(e.Holders) > 0
	}
	return claim.Holder != "" && claim.Holder == e.Holder || slices.Contains(e.Holders, claim.Holder)
}

func (c *claimChange) body() string {
	var b strings.Builder
	writeList(&b, "Taken", c.taken)
	writeList(&b, "Released", c.released)
	if b.Len() == 0 {
		writeList(&b, "Clusters", c.clusters)
	}
	return b.String()
}

func (c *claimChange) subject(name string) string {
	var parts []string
	if c.formerly != "" {
		parts = append(parts, "takes over from "+c.formerly)
	}
	parts = append(parts, wording.Counts([]int{len(c.taken), len(c.released)}, "taken", "released")...)
	switch {
	case len(parts) > 0:
	case c.isRemoved:
		parts = []string{"ends"}
	case len(c.clusters) == 0:
		parts = []string{"has no cluster"}
	default:
		parts = []string{"repaired"}
	}
	return name + ": " + strings.Join(parts, ", ")
}
