package gitops

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
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
