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

// ErrClaimHeld is the error of an edit of a claim whose record is another holder's.
var ErrClaimHeld = errors.New("the claim belongs to another Terraform state")

// ErrClaimUnreadable is the error of an edit that wants clusters while the record of another claim cannot be read:
// which ones are free cannot be told.
var ErrClaimUnreadable = errors.New("the record of a claim cannot be read")

// ErrClaimTwice is the error of an edit of a claim whose record lists a cluster that the record of another claim lists,
// too: which of the two has it cannot be told.
var ErrClaimTwice = errors.New("the records of two claims list one cluster")

// ClaimEdit is what one claim wants its record to say.
type ClaimEdit struct {
	// Name and Path together are the claim.
	Name, Path string
	// FormerName, when not "", is the name that the claim had at the same path. Its record becomes the claim's, in the
	// same commit.
	FormerName string
	// Environment is what the record and the commit say; it decides nothing.
	Environment string
	// Holder is who has the claim from then on. Whoever has another one finds the claim taken over.
	Holder string
	// Holders are those whose records are the claim's own, beside Holder. A record without a holder is of "".
	Holders []string
	// Adopt takes over the record of any holder.
	Adopt bool
	// Choose decides what the claim has, by what the tip says. It is called again when a race was lost. Its error is
	// that of the edit. Without it the record goes, if it is the claim's own.
	Choose func(ClaimTip) ([]string, error)
	// Author is author and committer.
	Author git.Signature
	// Subject begins the commit message; default: "claim team-a: 2 taken, 1 released".
	Subject string
	// Release goes into the trailer Flotilla-Release; "" leaves that out.
	Release string
	// Run goes into the trailer Flotilla-Run; "" leaves that out.
	Run string
}

// ClaimTip is what a tip says of claims.
type ClaimTip struct {
	// Held is what the claim's own record lists, in the order in which it was taken.
	Held []string
	// Elsewhere maps the clusters that other claims have to the names of those.
	Elsewhere map[string]string
}

// ClaimResult is the outcome of an edit of a claim.
type ClaimResult struct {
	ApplyResult
	// Clusters are what the claim has.
	Clusters []string
	// Record is the id of its record's blob, in hex; "" where it has none.
	Record string
}

// WriteClaim makes the record of a claim say what Choose decides, by one commit, or by none when it does already. The push
// is a compare-and-swap: what Choose sees is what the commit is made on, so that no two claims get the same cluster,
// however many there are. Edits of claims and of owners of one branch wait for each other, as Apply says.
//
// Errors: as of Apply, ErrClaimHeld, ErrClaimUnreadable, ErrClaimTwice, or what Choose returned.
func (c *BranchClient) WriteClaim(ctx context.Context, remote git.Remote, edit ClaimEdit) (ClaimResult, error) {
	if err := cmp.Or(remote.Check(), edit.check()); err != nil {
		return ClaimResult{}, describeError(remote, err)
	}
	result, err := c.write(ctx, remote, Edit{
		Owner:  Owner{Name: claimsFolder + "/" + edit.Name, Environment: edit.Environment, Path: edit.Path},
		Author: edit.Author, Subject: edit.Subject, Release: edit.Release, Run: edit.Run, claim: &edit,
	})
	if err != nil {
		return ClaimResult{}, describeError(remote, err)
	}
	return ClaimResult{ApplyResult: result, Clusters: result.claim.clusters, Record: result.claim.record}, nil
}

func (e ClaimEdit) check() error {
	if err := CheckClaim(e.Name); err != nil {
		return fmt.Errorf("the claim's name: %w", err)
	}
	return cmp.Or(
		checkFormerName("claim", e.FormerName, e.Name, CheckClaim),
		checkClaimTexts(e.Environment, e.Holder),
		e.Author.Check(),
		checkMessageText(e.Subject, e.Release),
		folder.CheckText(e.Run),
		git.CheckPath(e.Path),
	)
}

// claimChange is what an edit of a claim changes at one tip.
type claimChange struct {
	clusters        []string
	record          string // id of the blob
	taken, released []string
	formerly        string
	gone            bool // the record goes
}

// stageClaim works out what the edit changes at this tip. It only reads.
func stageClaim(ctx context.Context, w *layout, edit Edit, now time.Time) (*change, error) {
	e := edit.claim
	c := &change{edit: edit, claim: &claimChange{}}
	s, err := e.readTip(ctx, w)
	if err != nil {
		return nil, err
	}
	if e.Choose == nil {
		if s.is {
			c.claim.gone, c.claim.released = true, s.own.Names()
			c.remove = append(c.remove, ClaimRecordPath(e.Path, e.Name))
		}
		return c, nil
	}
	if s.held {
		return nil, newCompleteError(
			fmt.Errorf(
				"%w: claim %q already has the record %s; use another name, or set adopt = true to take the claim over",
				ErrClaimHeld,
				e.Name,
				ClaimRecordPath(e.Path, e.Name),
			),
		)
	}
	clusters, err := e.chooseClusters(s)
	if err != nil {
		return nil, err
	}
	wanted := s.own.withClusters(clusters, now)
	wanted.Environment, wanted.Holder = e.Environment, e.Holder
	content := wanted.encode()
	id := git.NewHasher().Blob(content)
	c.claim.clusters, c.claim.record = clusters, id.String()
	c.claim.taken, c.claim.released = subtractNames(clusters, s.own.Names()), subtractNames(s.own.Names(), clusters)
	if !s.there || s.id != id {
		c.put = append(c.put, putFile{path: ClaimRecordPath(e.Path, e.Name), id: id, content: content})
	}
	if s.moves {
		c.claim.formerly = e.FormerName
		c.remove = append(c.remove, ClaimRecordPath(e.Path, e.FormerName))
	}
	return c, nil
}

// choose lets the edit decide, and checks what it says.
func (e *ClaimEdit) chooseClusters(s *claimsAtTip) ([]string, error) {
	for _, cluster := range s.own.Names() {
		if other, twice := s.elsewhere[cluster]; twice {
			claims := []string{e.recordedName(s), other}
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

// without are the names of a list that another one does not have.
func subtractNames(names, others []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return slices.Contains(others, name) })
}

// claimsAtTip is what a tip says of claims at a path, as one of them sees it.
type claimsAtTip struct {
	own        Claim    // the claim's own record; the one of its former name where there is no other
	id         git.Hash // of the record with the claim's name
	there      bool     // there is a record with the claim's name
	is         bool     // that record is the claim's own
	held       bool     // that record is another holder's
	moves      bool     // there is a record of the claim's own with its former name
	elsewhere  map[string]string
	unreadable []string // paths of records
}

// claimsFor reads the records of all claims at the path.
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
	s.id, s.there = entries[e.Name]
	s.is = s.there && (e.Adopt || e.isOwn(readable, e.Name))
	s.held = s.there && !s.is
	if _, moves := entries[e.FormerName]; moves && e.isOwn(readable, e.FormerName) {
		s.moves, s.own = true, readable[e.FormerName]
	}
	if s.is {
		s.own = readable[e.Name]
	}
	for _, claim := range all.Claims {
		if claim.Name == e.Name && s.is || claim.Name == e.FormerName && s.moves {
			continue
		}
		for _, cluster := range claim.Names() {
			s.elsewhere[cluster] = claim.Name
		}
	}
	s.unreadable = slices.DeleteFunc(all.Unreadable, func(at string) bool {
		return at == ClaimRecordPath(e.Path, e.Name) || s.moves && at == ClaimRecordPath(e.Path, e.FormerName)
	})
	return s, nil
}

// recorded is the name in whose record the claim's clusters are.
func (e *ClaimEdit) recordedName(s *claimsAtTip) string {
	if s.is {
		return e.Name
	}
	return e.FormerName
}

// isOwn reports whether the record of a name is the claim's own. One that cannot be read may have any holder; a claim
// that has a holder of its own replaces it.
func (e *ClaimEdit) isOwn(readable map[string]Claim, name string) bool {
	claim, ok := readable[name]
	if !ok {
		return len(e.Holders) > 0
	}
	return claim.Holder != "" && claim.Holder == e.Holder || slices.Contains(e.Holders, claim.Holder)
}

// subject is the first line of a commit message.
func (c *claimChange) subject(name string) string {
	var parts []string
	if c.formerly != "" {
		parts = append(parts, "takes over from "+c.formerly)
	}
	parts = append(parts, wording.Counts([]int{len(c.taken), len(c.released)}, "taken", "released")...)
	switch {
	case len(parts) > 0:
	case c.gone:
		parts = []string{"ends"}
	case len(c.clusters) == 0:
		parts = []string{"has no cluster"}
	default:
		parts = []string{"repaired"}
	}
	return name + ": " + strings.Join(parts, ", ")
}
