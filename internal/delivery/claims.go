package delivery

import (
	"context"
	"errors"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Claim is one flotilla_cluster_claim and its location.
type Claim struct {
	Location folder.Location
	Name     string
}

// ClaimState is what the state knows of a claim since it was written last.
type ClaimState struct {
	Claim
	// Holder is a random text that tells the claim of this state from that of another.
	Holder string
	// Record is the id of its record.
	Record string
	// Clusters are what it has, in the order in which they were taken.
	Clusters []string
}

// SeenClaim is how the repository has a claim.
type SeenClaim struct {
	// Gone says that the repository does not exist any more.
	Gone bool `json:"gone,omitempty"`
	// Touched says that the record is not as it was left: changed by hand, or gone.
	Touched bool `json:"touched,omitempty"`
	// Foreign says that another holder has taken over the claim.
	Foreign bool `json:"foreign,omitempty"`
	// Unsigned says by which commit the record was changed, where no allowed key has signed it; else "".
	Unsigned string `json:"unsigned,omitempty"`
	// Clusters are what the record lists; none where there is none, it is another holder's, or no allowed key has signed it.
	Clusters []string `json:"clusters,omitempty"`
	// Lost are those of the known clusters that another claim has.
	Lost []string `json:"lost,omitempty"`
}

// ErrDuplicateClaim is the error of a second flotilla_cluster_claim of one name at one location.
var ErrDuplicateClaim = errors.New("another flotilla_cluster_claim of this configuration has the same name, repository, branch and path")

// ClaimRecords reads and writes the records of claims.
type ClaimRecords struct {
	reader   *Reader
	registry *Registry
	options  ServiceOptions
}

// keyOfClaim differs from that of any owner, whose name has no dot.
func newClaimKey(claim Claim) ownerKey {
	return newOwnerKey(Owner{Location: claim.Location, Name: ".claims/" + claim.Name})
}

// RegisterClaim notes that a claim is planned, and fails for a second one of its name, as Planned does.
func (r *Registry) RegisterClaim(claim Claim) error {
	return r.register(newClaimKey(claim), claim.Location, claim.Name, ErrDuplicateClaim)
}

// KnownClaimHolders are the holders of the claim that this process has read in the state.
func (r *Registry) KnownClaimHolders(claim Claim) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.holders[newClaimKey(claim)])
}

// ReadClaims are all claims at a location. A branch is read once for all of them.
//
// Errors: as of a look.
func (c *ClaimRecords) ReadClaims(ctx context.Context, at folder.Location) (gitops.Claims, error) {
	look, err := c.reader.branch(ctx, at)
	if err != nil {
		return gitops.Claims{}, err
	}
	return look.ReadClaims(ctx, at.Path)
}

// FindUnsignedClaims says, of these claims at a location, by which commit the record was changed last, where no allowed key
// has signed it.
//
// Errors: as of a look.
func (c *ClaimRecords) FindUnsignedClaims(ctx context.Context, at folder.Location, names ...string) (map[string]string, error) {
	look, err := c.reader.branch(ctx, at)
	if err != nil {
		return nil, err
	}
	return look.FindUnsignedClaims(ctx, at.Path, names)
}

// RefreshClaim compares the record of a claim with what was written.
//
// Errors: as of a look.
func (c *ClaimRecords) RefreshClaim(ctx context.Context, known ClaimState) (SeenClaim, error) {
	c.registry.registerHolder(newClaimKey(known.Claim), known.Holder)
	look, err := c.reader.branch(ctx, known.Location)
	if isGone(err) || err == nil && look.Missing() {
		return SeenClaim{Gone: true, Touched: true}, nil
	}
	if err != nil {
		return SeenClaim{}, err
	}
	all, err := look.ReadClaims(ctx, known.Location.Path)
	if err != nil {
		return SeenClaim{}, err
	}
	if slices.ContainsFunc(all.Claims, func(c gitops.Claim) bool { return c.Name == known.Name && c.Record == known.Record }) {
		return SeenClaim{Clusters: known.Clusters}, nil
	}
	seen := SeenClaim{Touched: true}
	unsigned, err := look.FindUnsignedClaims(ctx, known.Location.Path, []string{known.Name})
	if err != nil {
		return SeenClaim{}, err
	}
	seen.Unsigned = unsigned[known.Name]
	for _, claim := range all.Claims {
		switch {
		case claim.Name != known.Name && claim.Holder == known.Holder && known.Holder != "":
			// It was renamed by an apply whose result did not reach the state.
		case claim.Name != known.Name:
			for _, cluster := range claim.Names() {
				if slices.Contains(known.Clusters, cluster) {
					seen.Lost = append(seen.Lost, cluster)
				}
			}
		case claim.Holder == known.Holder || claim.Holder == "":
			if seen.Unsigned == "" {
				seen.Clusters = claim.Names()
			}
		default:
			seen.Foreign = true
		}
	}
	return seen, nil
}

// WriteClaim writes the record of a claim; the edit's name, path, author and release are set here. It is pushed directly: a pull
// request could not be a compare-and-swap.
//
// Errors: as of gitops.BranchClient.WriteClaim.
func (c *ClaimRecords) WriteClaim(ctx context.Context, claim Claim, edit gitops.ClaimEdit) (gitops.ClaimResult, error) {
	remote := c.reader.remote(claim.Location)
	defer c.reader.branches.forget(remote)
	edit.Name, edit.Path, edit.Author, edit.Release, edit.Run = claim.Name, claim.Location.Path, c.options.Author, c.options.Release, c.options.Run
	return c.options.Git.WriteClaim(ctx, remote, edit)
}

// ReleaseClaim releases all clusters of a claim, and removes its record. A record of another holder is left alone:
// then foreign is true. A repository that does not exist any more has nothing to release.
//
// Errors: as of gitops.BranchClient.WriteClaim.
func (c *ClaimRecords) ReleaseClaim(ctx context.Context, claim Claim, holders []string, subject string) (foreign bool, err error) {
	_, err = c.WriteClaim(ctx, claim, gitops.ClaimEdit{Holders: holders, Subject: subject})
	if isGone(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	left, err := c.ReadClaims(ctx, claim.Location)
	if err != nil {
		return false, nil //nolint:nilerr // it is released, which is what was asked for
	}
	return slices.ContainsFunc(left.Claims, func(c gitops.Claim) bool { return c.Name == claim.Name }), nil
}
