package gitops

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// claimFormat is the format of the records of claims that are written. One of a newer format is read as far as it is
// known, and keeps its format and the rest.
const claimFormat = 1

const (
	// claimsFolder is beside the folders of owners' records. No owner has its name, since none begins with a dot.
	claimsFolder = ".claims"
	maxClaim     = 4 << 20 // bytes of a record
	// MaxClaimed is how many clusters a claim may have.
	MaxClaimed = 10_000
	// maxClaimText bounds the holder and the environment.
	maxClaimText = 253
)

// Claim is what the branch says that a claim has.
type Claim struct {
	// Name and Path together are the claim: two of one name at two paths are two.
	Name, Path string
	// Environment is what the record says; it decides nothing.
	Environment string
	// Holder is a random text from the Terraform state that has the claim, to tell it from others. "" where the
	// record does not say.
	Holder string
	// Clusters are in the order in which they were taken.
	Clusters []ClaimedCluster
	// Record is the id of the record's blob, in hex.
	Record string

	format int
	more   fields // of the record, that this version does not know
}

// ClaimedCluster is one cluster of a claim.
type ClaimedCluster struct {
	Name string
	// Since is the time of the commit that took it; zero where the record does not say.
	Since time.Time

	more fields
}

// Names are the names of the clusters, in order.
func (c Claim) Names() []string {
	names := make([]string, len(c.Clusters))
	for i, cluster := range c.Clusters {
		names[i] = cluster.Name
	}
	return names
}

// claimsAt is the folder of the records of claims.
func claimsPath(at string) string { return path.Join(at, recordsFolder, claimsFolder) }

// ClaimRecordPath is the file that records what a claim at a path has.
func ClaimRecordPath(at, name string) string { return path.Join(claimsPath(at), name+recordSuffix) }

// CheckClaim reports what is wrong with the name of a claim.
func CheckClaim(name string) error {
	if err := git.CheckName(name); err != nil {
		return err
	}
	if len(name)+len(recordSuffix) > git.MaxSegment {
		return fmt.Errorf("name %q is too long for its record", name)
	}
	return nil
}

// encode writes the record canonically, in lines that make a readable diff.
func (c Claim) encode() []byte {
	b := append(appendHead(nil, c.format, c.Environment, c.Holder), `  "clusters": [`...)
	for i, cluster := range c.Clusters {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMember(append(b, "\n    {\n"...), "      ", "name", cluster.Name, "")
		if !cluster.Since.IsZero() {
			b = appendMember(append(b, ",\n"...), "      ", "since", cluster.Since.Format(time.RFC3339), "")
		}
		b = append(cluster.more.encode(b, "      "), "\n    }"...)
	}
	if len(c.Clusters) > 0 {
		b = append(b, "\n  "...)
	}
	return append(c.more.encode(append(b, ']'), "  "), "\n}\n"...)
}

// parseClaim reads a record. Anybody who may push can have written it, so each name is checked.
func parseClaim(content []byte) (Claim, error) {
	if err := checkBounds(content, maxClaim); err != nil {
		return Claim{}, err
	}
	c, err := parseClaimFields(content)
	if err != nil {
		return Claim{}, fmt.Errorf("the record is not valid: %w", err)
	}
	return c, nil
}

func parseClaimFields(content []byte) (Claim, error) {
	var c Claim
	var clusters []fields
	err := c.more.readHead(content, &c.format, &c.Environment, &c.Holder, "clusters", &clusters)
	if err = cmp.Or(err, checkClaimTexts(c.Environment, c.Holder)); err != nil {
		return Claim{}, err
	}
	switch {
	case clusters == nil:
		return Claim{}, errors.New("it has no clusters")
	case len(clusters) > MaxClaimed:
		return Claim{}, fmt.Errorf("it has more than %d clusters", MaxClaimed)
	}
	seen := make(map[string]bool, len(clusters))
	c.Clusters = make([]ClaimedCluster, len(clusters))
	for i, members := range clusters {
		cluster, err := parseClaimedCluster(members)
		if err != nil {
			return Claim{}, err
		}
		if seen[cluster.Name] {
			return Claim{}, fmt.Errorf("cluster %q is there twice", cluster.Name)
		}
		seen[cluster.Name] = true
		c.Clusters[i] = cluster
	}
	return c, nil
}

func parseClaimedCluster(members fields) (ClaimedCluster, error) {
	cluster, since := ClaimedCluster{more: members}, ""
	if err := cluster.more.takeMember("name", &cluster.Name); err != nil {
		return ClaimedCluster{}, err
	}
	if err := checkClusterName(cluster.Name); err != nil {
		return ClaimedCluster{}, err
	}
	err := cluster.more.takeMember("since", &since)
	cluster.Since, _ = time.Parse(time.RFC3339, since) // it is only shown
	return cluster, err
}

// checkClaimTexts reports what is wrong with the environment or the holder of a claim.
func checkClaimTexts(texts ...string) error {
	for _, text := range texts {
		if len(text) > maxClaimText || strings.ContainsFunc(text, isControl) {
			return fmt.Errorf("the environment or holder is longer than %d bytes, or has a control character", maxClaimText)
		}
	}
	return nil
}

// checkClaimed refuses names that no cluster of a fleet can have, since [checkHost] refuses them as hosts. The names become
// values in Terraform, which configurations put into file names and addresses.
func checkClusterName(name string) error {
	if git.CheckSegment(name) != nil {
		return fmt.Errorf("%.80q is not the name of a cluster", name)
	}
	return nil
}

// with is the claim with these clusters. Those that it has stay as they are, the others are since now.
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
	c.format = max(c.format, claimFormat)
	return c
}
