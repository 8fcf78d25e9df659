package report

import (
	_ "embed"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// Links has patterns of addresses by title, as [CheckLink] accepts.
type Links struct{ Assignments, Clusters map[string]string }

// The placeholders of patterns, filled by the script.
var (
	OfAssignment = []string{
		"environment", "host", "cluster_type", "cluster", "deployment_target", "workload", "workspace", "namespace", "commit", "folder",
	}
	OfCluster = []string{"environment", "cluster", "cluster_type", "commit"}
)

// MaxLinks limits patterns of a kind, and maxLink the bytes of one.
const (
	MaxLinks = 20
	maxLink  = 2000
)

var placeholder = regexp.MustCompile(`\{([^{}]*)\}`)

// CheckLink returns an error, as a clause, unless a pattern is an https URL with known placeholders, such as {host}.
func CheckLink(pattern string, placeholders []string) error {
	for _, found := range placeholder.FindAllStringSubmatch(pattern, -1) {
		if !slices.Contains(placeholders, found[1]) {
			return fmt.Errorf("has the placeholder %q, which is none of {%s}", found[0], strings.Join(placeholders, "}, {"))
		}
	}
	filled := placeholder.ReplaceAllString(pattern, "x")
	parsed, err := url.Parse(filled)
	switch {
	case len(pattern) > maxLink:
		return fmt.Errorf("has %d bytes; the most is %d", len(pattern), maxLink)
	case !strings.HasPrefix(pattern, "https://"):
		return errors.New("must begin with https://")
	case strings.ContainsAny(filled, "{}"):
		return errors.New("has a brace that belongs to no placeholder; in a URL it is %7B or %7D")
	case err != nil || parsed.Host == "":
		return errors.New("is not a URL such as https://logs.example.com/{cluster}")
	case parsed.User != nil:
		return errors.New("must have no credentials: everybody who sees the page sees them")
	}
	return nil
}

// linkData has pairs of a title and a pattern.
type linkData struct {
	Environment string      `json:"environment"`
	Path        string      `json:"path"`
	Assignments [][2]string `json:"assignments"`
	Clusters    [][2]string `json:"clusters"`
}

func linksOf(p *Page) *linkData {
	if len(p.Links.Assignments)+len(p.Links.Clusters) == 0 {
		return nil
	}
	pairs := func(patterns map[string]string) [][2]string {
		made := [][2]string{}
		for _, title := range slices.Sorted(maps.Keys(patterns)) {
			made = append(made, [2]string{clean(title), clean(patterns[title])})
		}
		return made
	}
	return &linkData{clean(p.Environment), clean(p.Repository.Path), pairs(p.Links.Assignments), pairs(p.Links.Clusters)}
}
