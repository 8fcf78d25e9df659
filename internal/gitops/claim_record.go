package gitops

import (
	"encoding/json"
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
	// maxClaimText bounds the holder and names of clusters.
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
}

// ClaimedCluster is one cluster of a claim.
type ClaimedCluster struct {
	Name string
	// Since is the time of the commit that took it; zero where the record does not say.
	Since time.Time
}

// Names are the names of the clusters, in order.
func (c Claim) Names() []string { return namesOf(c.Clusters) }

func namesOf(clusters []ClaimedCluster) []string {
	names := make([]string, len(clusters))
	for i, cluster := range clusters {
		names[i] = cluster.Name
	}
	return names
}

// claimsAt is the folder of the records of claims.
func claimsAt(at string) string { return path.Join(at, recordsFolder, claimsFolder) }

// ClaimRecordPath is the file that records what a claim at a path has.
func ClaimRecordPath(at, name string) string { return path.Join(claimsAt(at), name+recordSuffix) }

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

// claimRecord is the file that records what a claim has.
type claimRecord struct {
	format              int
	environment, holder string
	clusters            []claimedCluster
	more                fields
}

type claimedCluster struct {
	name, since string
	more        fields
}

// encode writes the record canonically, in lines that make a readable diff.
func (r claimRecord) encode() []byte {
	b := fmt.Appendf(nil, "{\n  \"format\": %d,\n", r.format)
	if r.environment != "" {
		b = appendMember(b, "  ", "environment", r.environment, ",\n")
	}
	if r.holder != "" {
		b = appendMember(b, "  ", "holder", r.holder, ",\n")
	}
	b = append(b, `  "clusters": [`...)
	for i, cluster := range r.clusters {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMember(append(b, "\n    {\n"...), "      ", "name", cluster.name, "")
		if cluster.since != "" {
			b = appendMember(append(b, ",\n"...), "      ", "since", cluster.since, "")
		}
		b = append(cluster.more.encode(b, "      "), "\n    }"...)
	}
	if len(r.clusters) > 0 {
		b = append(b, "\n  "...)
	}
	return append(r.more.encode(append(b, ']'), "  "), "\n}\n"...)
}

// parseClaim reads a record. Anybody who may push can have written it, so each name is checked.
func parseClaim(content []byte) (claimRecord, error) {
	if err := checkBounds(content, maxClaim); err != nil {
		return claimRecord{}, err
	}
	r, err := parseClaimFields(content)
	if err != nil {
		return claimRecord{}, fmt.Errorf("the record is not valid: %w", err)
	}
	return r, nil
}

func parseClaimFields(content []byte) (claimRecord, error) {
	var r claimRecord
	if err := json.Unmarshal(content, &r.more); err != nil {
		return claimRecord{}, err
	}
	if err := r.more.take("format", &r.format); err != nil {
		return claimRecord{}, err
	}
	if r.format < 1 {
		return claimRecord{}, errors.New("it has no format, or one below 1")
	}
	for name, text := range map[string]*string{"environment": &r.environment, "holder": &r.holder} {
		if err := r.more.take(name, text); err != nil {
			return claimRecord{}, err
		}
		if len(*text) > maxClaimText || strings.ContainsFunc(*text, isControl) {
			return claimRecord{}, fmt.Errorf("%s is longer than %d bytes, or has a control character", name, maxClaimText)
		}
	}
	var clusters []fields
	if err := r.more.take("clusters", &clusters); err != nil {
		return claimRecord{}, err
	}
	if clusters == nil {
		return claimRecord{}, errors.New("it has no clusters")
	}
	if len(clusters) > MaxClaimed {
		return claimRecord{}, fmt.Errorf("it has more than %d clusters", MaxClaimed)
	}
	seen := make(map[string]bool, len(clusters))
	for _, members := range clusters {
		cluster, err := parseClaimedCluster(members)
		if err != nil {
			return claimRecord{}, err
		}
		if seen[cluster.name] {
			return claimRecord{}, fmt.Errorf("cluster %q is there twice", cluster.name)
		}
		seen[cluster.name] = true
		r.clusters = append(r.clusters, cluster)
	}
	return r, nil
}

func parseClaimedCluster(members fields) (claimedCluster, error) {
	cluster := claimedCluster{more: members}
	if err := cluster.more.take("name", &cluster.name); err != nil {
		return claimedCluster{}, err
	}
	if err := checkClaimed(cluster.name); err != nil {
		return claimedCluster{}, err
	}
	if err := cluster.more.take("since", &cluster.since); err != nil {
		return claimedCluster{}, err
	}
	// The time is only shown.
	if _, err := time.Parse(time.RFC3339, cluster.since); err != nil {
		cluster.since = ""
	}
	return cluster, nil
}

// checkClaimed reports what is wrong with the name of a cluster. It need not be a file name.
func checkClaimed(name string) error {
	if name == "" || len(name) > maxClaimText || strings.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
		return fmt.Errorf("%.80q is not the name of a cluster", name)
	}
	return nil
}

// public is the record for those who read it.
func (r claimRecord) public(at, name string, id git.Hash) Claim {
	claim := Claim{Name: name, Path: at, Environment: r.environment, Holder: r.holder, Record: id.String(), Clusters: []ClaimedCluster{}}
	for _, cluster := range r.clusters {
		since, _ := time.Parse(time.RFC3339, cluster.since) // checked when it was read
		claim.Clusters = append(claim.Clusters, ClaimedCluster{Name: cluster.name, Since: since})
	}
	return claim
}

// names are the names of the clusters, in order.
func (r claimRecord) names() []string {
	names := make([]string, len(r.clusters))
	for i, cluster := range r.clusters {
		names[i] = cluster.name
	}
	return names
}

// with is the record with these clusters. Those that it has stay as they are, the others are since now.
func (r claimRecord) with(clusters []string, now time.Time) claimRecord {
	had := make(map[string]claimedCluster, len(r.clusters))
	for _, cluster := range r.clusters {
		had[cluster.name] = cluster
	}
	r.clusters = make([]claimedCluster, len(clusters))
	for i, name := range clusters {
		cluster, ok := had[name]
		if !ok {
			cluster = claimedCluster{name: name, since: now.UTC().Format(time.RFC3339)}
		}
		r.clusters[i] = cluster
	}
	r.format = max(r.format, claimFormat)
	return r
}
