package gitops

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// claimFormat is the format of written records. Members of a newer format survive, with the format.
const claimFormat = 1

const (
	// claimsFolder is beside the records folders of owners, whose names cannot begin with a dot.
	claimsFolder = ".claims"
	maxClaim     = 4 << 20 // bytes
	// MaxClaimed is the largest number of clusters in a claim.
	MaxClaimed   = 10_000
	maxClaimText = 253
)

// Claim is the record of a claim.
type Claim struct {
	Name        string `json:"-"`
	Path        string `json:"-"`
	Environment string `json:"environment"`
	// Holder is the random text of the Terraform state that has the claim; "" if the record has none.
	Holder string `json:"holder"`
	// Clusters are ordered by the time of taking.
	Clusters []ClaimedCluster `json:"clusters"`
	// Record is the id of the blob in hex.
	Record string `json:"-"`
	Format int    `json:"format"`

	more fields
}

// ClaimedCluster is one cluster of a claim.
type ClaimedCluster struct {
	Name string
	// Since is the time of the commit that took the cluster, if known.
	Since time.Time

	more fields
}

// Names returns the names.
func (c Claim) Names() []string {
	names := make([]string, len(c.Clusters))
	for i, cluster := range c.Clusters {
		names[i] = cluster.Name
	}
	return names
}

func claimsPath(at string) string { return path.Join(at, recordsFolder, claimsFolder) }

// ClaimRecordPath returns the path of a claim's record.
func ClaimRecordPath(at, name string) string { return path.Join(claimsPath(at), name+recordSuffix) }

// CheckClaim checks a name.
func CheckClaim(name string) error {
	if err := git.CheckName(name); err != nil {
		return err
	}
	if len(name)+len(recordSuffix) > git.MaxSegment {
		return fmt.Errorf("name %q is too long for its record", name)
	}
	return nil
}

func (c Claim) encode() []byte {
	b := append(appendName(appendHead(nil, c.Format, c.Environment, c.Holder), "\n  ", "clusters"), '[')
	for i, cluster := range c.Clusters {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMember(append(b, "\n    {"...), "\n      ", "name", cluster.Name)
		if !cluster.Since.IsZero() {
			b = appendMember(b, "\n      ", "since", cluster.Since.Format(time.RFC3339))
		}
		b = append(cluster.more.encode(b, "\n      "), "\n    }"...)
	}
	if len(c.Clusters) > 0 {
		b = append(b, "\n  "...)
	}
	return append(c.more.encode(append(b, ']'), "\n  "), "\n}\n"...)
}

// parseClaim parses a record by anybody with push access, so it checks every name.
func parseClaim(content []byte) (Claim, error) {
	if err := checkBounds(content, maxClaim); err != nil {
		return Claim{}, err
	}
	var c Claim
	if err := cmp.Or(json.Unmarshal(content, &c), json.Unmarshal(content, &c.more), c.check()); err != nil {
		return Claim{}, fmt.Errorf("the record is not valid: %w", err)
	}
	c.more.drop("format", "environment", "holder", "clusters")
	return c, nil
}

// UnmarshalJSON ignores an invalid time.
func (c *ClaimedCluster) UnmarshalJSON(content []byte) error {
	var known struct {
		Name  string `json:"name"`
		Since string `json:"since"`
	}
	if err := cmp.Or(json.Unmarshal(content, &known), json.Unmarshal(content, &c.more)); err != nil {
		return err
	}
	c.more.drop("name", "since")
	c.Name = known.Name
	c.Since, _ = time.Parse(time.RFC3339, known.Since)
	return nil
}

func (c *Claim) check() error {
	if err := cmp.Or(checkFormat(c.Format), checkClaimTexts(c.Environment, c.Holder)); err != nil {
		return err
	}
	switch {
	case c.Clusters == nil:
		return errors.New("it has no clusters")
	case len(c.Clusters) > MaxClaimed:
		return fmt.Errorf("it has more than %d clusters", MaxClaimed)
	}
	seen := make(map[string]bool, len(c.Clusters))
	for _, cluster := range c.Clusters {
		if err := checkClusterName(cluster.Name); err != nil {
			return err
		}
		if seen[cluster.Name] {
			return fmt.Errorf("cluster %q is there twice", cluster.Name)
		}
		seen[cluster.Name] = true
	}
	return nil
}

func checkClaimTexts(texts ...string) error {
	for _, text := range texts {
		if len(text) > maxClaimText || strings.ContainsFunc(text, isControl) {
			return fmt.Errorf("the environment or holder is longer than %d bytes, or has a control character", maxClaimText)
		}
	}
	return nil
}

func checkClusterName(name string) error {
	if git.CheckSegment(name) != nil {
		return fmt.Errorf("%.80q is not the name of a cluster", name)
	}
	return nil
}

// withClusters returns the claim with these clusters. New ones are taken now.
func (c Claim) withClusters(clusters []string, now time.Time) Claim {
	had := make(map[string]ClaimedCluster, len(c.Clusters))
	for _, cluster := range c.Clusters {
		had[cluster.Name] = cluster
	}
	c.Clusters = make([]ClaimedCluster, len(clusters))
	for i, name := range clusters {
		cluster, ok := had[name]
		if !ok {
			cluster = ClaimedCluster{Name: name, Since: now.UTC()}
		}
		c.Clusters[i] = cluster
	}
	c.Format = max(c.Format, claimFormat)
	return c
}

// Claims are all claims at one path of a branch.
type Claims struct {
	Commit string
	Claims []Claim
	// Unreadable has paths.
	Unreadable []string
}

// ClaimedTwice is a cluster in the records of several claims.
type ClaimedTwice struct {
	Path, Cluster string
	Claims        []string
}

// String describes the cluster, its claims and their records.
func (t ClaimedTwice) String() string {
	listed := make([]string, len(t.Claims))
	for i, name := range t.Claims {
		listed[i] = fmt.Sprintf("claim %q (%s)", name, ClaimRecordPath(t.Path, name))
	}
	return fmt.Sprintf("cluster %q belongs to %s", t.Cluster, wording.List(listed, wording.Named))
}

// FindClaimedTwice returns the clusters that several claims at one path have, in order.
func FindClaimedTwice(claims []Claim) []ClaimedTwice {
	type place struct{ path, cluster string }
	by := map[place][]string{}
	for _, claim := range claims {
		for _, cluster := range claim.Names() {
			at := place{claim.Path, cluster}
			if !slices.Contains(by[at], claim.Name) {
				by[at] = append(by[at], claim.Name)
			}
		}
	}
	var twice []ClaimedTwice
	for at, names := range by {
		if len(names) > 1 {
			slices.Sort(names)
			twice = append(twice, ClaimedTwice{at.path, at.cluster, names})
		}
	}
	slices.SortFunc(twice, func(a, b ClaimedTwice) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), strings.Compare(a.Cluster, b.Cluster))
	})
	return twice
}

// ReadClaims reads the records of all claims at a path.
func (l *Branch) ReadClaims(ctx context.Context, at string) (Claims, error) {
	return withTip(ctx, l, func() (Claims, error) {
		entries, err := l.opened.openClaims(ctx, at)
		if err != nil {
			return Claims{}, err
		}
		found, err := l.opened.readClaims(ctx, at, entries)
		found.Commit = l.Tip()
		return found, err
	})
}

func (w *layout) openClaims(ctx context.Context, at string) (map[string]git.Hash, error) {
	if err := git.CheckPath(at); err != nil {
		return nil, err
	}
	if err := w.Open(ctx, []string{claimsPath(at)}); err != nil {
		return nil, err
	}
	if err := w.Blocked(claimsPath(at)); err != nil {
		return nil, err
	}
	return w.claimEntries(at), nil
}

// claimEntries lists the records in an open folder, by name.
func (w *layout) claimEntries(at string) map[string]git.Hash {
	entries := map[string]git.Hash{}
	w.eachEntry(claimsPath(at), func(e git.Entry) {
		name, ok := strings.CutSuffix(e.Name, recordSuffix)
		if ok && e.IsFile() && CheckClaim(name) == nil {
			entries[name] = e.ID
		}
	})
	return entries
}

func (w *layout) readClaims(ctx context.Context, at string, entries map[string]git.Hash) (found Claims, err error) {
	if err := w.Need(ctx, slices.Collect(maps.Values(entries))); err != nil {
		return found, err
	}
	left := &budget{maxClaims, fmt.Sprintf("the records of claims in %q have more than %d MiB together", claimsPath(at), maxClaims>>20)}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		content, err := w.Blob(entries[name])
		if err = cmp.Or(err, left.spend(len(content))); err != nil {
			return found, err
		}
		claim, err := parseClaim(content)
		if err != nil {
			found.Unreadable = append(found.Unreadable, ClaimRecordPath(at, name))
			continue
		}
		claim.Name, claim.Path, claim.Record = name, at, entries[name].String()
		found.Claims = append(found.Claims, claim)
	}
	return found, nil
}
