package delivery

import (
	"context"
	"errors"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Claim is one flotilla_cluster_claim.
type Claim struct {
	Location folder.Location
	Name     string
}

// ClaimState is a claim in the Terraform state.
type ClaimState struct {
	Claim
	// Holder ties the record to this state.
	Holder   string
	Record   string
	Clusters []string
}

// SeenClaim is a claim in the repository.
type SeenClaim struct {
	// Gone reports that the repository does not exist.
	Gone bool `json:"gone,omitempty"`
	// Touched reports that the record was changed by hand or is missing.
	Touched bool `json:"touched,omitempty"`
	// Foreign reports that another holder took the claim over.
	Foreign bool `json:"foreign,omitempty"`
	// Unsigned names the last commit of the record, if no allowed key has signed it.
	Unsigned string `json:"unsigned,omitempty"`
	// Clusters are empty if the record belongs to another holder or is unsigned.
	Clusters []string `json:"clusters,omitempty"`
	// Lost are known clusters that another claim has.
	Lost []string `json:"lost,omitempty"`
}

// ErrDuplicateClaim reports a second claim of one name at one location.
var ErrDuplicateClaim = errors.New("another flotilla_cluster_claim of this configuration has the same name, repository, branch and path")

// ClaimRecords reads and writes the records of claims.
type ClaimRecords struct {
	reader   *Reader
	registry *Registry
	options  ServiceOptions
}

func newClaimKey(claim Claim) ownerKey {
	return newOwnerKey(Owner{Location: claim.Location, Name: ".claims/" + claim.Name})
}

// RegisterClaim remembers a planned claim, like RegisterOwner.
func (r *Registry) RegisterClaim(claim Claim) error {
	return r.register(newClaimKey(claim), claim.Location, claim.Name, ErrDuplicateClaim)
}

// KnownClaimHolders returns the holders that this process has read from the state.
func (r *Registry) KnownClaimHolders(claim Claim) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.holders[newClaimKey(claim)])
}

// ReadClaims returns all claims at a location.
func (c *ClaimRecords) ReadClaims(ctx context.Context, at folder.Location) (gitops.Claims, error) {
	branch, err := c.reader.branch(ctx, at)
	if err != nil {
		return gitops.Claims{}, err
	}
	return branch.ReadClaims(ctx, at.Path)
}

// FindUnsignedClaims returns the named claims whose record no allowed key has signed, with the commit.
func (c *ClaimRecords) FindUnsignedClaims(ctx context.Context, at folder.Location, names ...string) (map[string]string, error) {
	branch, err := c.reader.branch(ctx, at)
	if err != nil {
		return nil, err
	}
	return branch.FindUnsignedClaims(ctx, at.Path, names)
}

// RefreshClaim compares the record of a claim with the state.
func (c *ClaimRecords) RefreshClaim(ctx context.Context, known ClaimState) (SeenClaim, error) {
	c.registry.registerHolder(newClaimKey(known.Claim), known.Holder)
	branch, err := c.reader.branch(ctx, known.Location)
	if isGone(err) || err == nil && branch.IsMissing() {
		return SeenClaim{Gone: true, Touched: true}, nil
	}
	if err != nil {
		return SeenClaim{}, err
	}
	all, err := branch.ReadClaims(ctx, known.Location.Path)
	if err != nil {
		return SeenClaim{}, err
	}
	if slices.ContainsFunc(all.Claims, func(c gitops.Claim) bool { return c.Name == known.Name && c.Record == known.Record }) {
		return SeenClaim{Clusters: known.Clusters}, nil
	}
	seen := SeenClaim{Touched: true}
	unsigned, err := branch.FindUnsignedClaims(ctx, known.Location.Path, []string{known.Name})
	if err != nil {
		return SeenClaim{}, err
	}
	seen.Unsigned = unsigned[known.Name]
	for _, claim := range all.Claims {
		switch {
		case claim.Name != known.Name && claim.Holder == known.Holder && known.Holder != "":
			// The apply that renamed the claim failed before it wrote the state.
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

// WriteClaim writes the record of a claim. It pushes directly: a pull request is no compare-and-swap.
func (c *ClaimRecords) WriteClaim(ctx context.Context, claim Claim, edit gitops.ClaimEdit) (gitops.ClaimResult, error) {
	remote := c.reader.remote(claim.Location)
	defer c.reader.branches.forget(remote)
	edit.Name, edit.Path = claim.Name, claim.Location.Path
	edit.Author, edit.Release, edit.Run = c.options.Author, c.options.Release, c.options.Run
	return c.options.Git.WriteClaim(ctx, remote, edit)
}

// ReleaseClaim removes the record of a claim. foreign reports that it belongs to another holder and stays.
func (c *ClaimRecords) ReleaseClaim(ctx context.Context, claim Claim, holders []string, subject string) (foreign bool, err error) {
	result, err := c.WriteClaim(ctx, claim, gitops.ClaimEdit{Holders: holders, Subject: subject})
	if isGone(err) {
		return false, nil
	}
	return result.IsForeign, err
}
