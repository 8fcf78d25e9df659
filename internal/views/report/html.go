package report

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // the page's own files
	"encoding/base64"
	"errors"
	"fmt"
	"html/template"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// The scripts are one script, in this order.
var (
	//go:embed assets/page.html
	pageHTML string
	//go:embed assets/page.css
	pageCSS string
	//go:embed assets/data.js
	dataScript string
	//go:embed assets/grid.js
	gridScript string
	//go:embed assets/detail.js
	detailScript string
	//go:embed assets/page.js
	pageScript string
)

var pageTemplate = template.Must(template.New("page").Funcs(functions).Parse(pageHTML))

// HTML returns one HTML file in UTF-8 that loads nothing, by its content security policy, and is readable without scripts. A page
// over 8 MiB omits values of snapshots. An error is a bug in this package.
func HTML(p *Page) ([]byte, error) {
	rows := listing(p)
	encoded, err := encode(p, everything)
	for detail := withoutTexts; err == nil && detail >= withoutValues && len(encoded)+len(rows)+comparisonBytes(p) > dataBytes; detail-- {
		encoded, err = encode(p, detail)
	}
	if err != nil {
		return nil, err
	}
	script := dataScript + gridScript + detailScript + pageScript
	var b bytes.Buffer
	b.Grow(len(encoded) + len(rows) + 1<<18)
	err = pageTemplate.Execute(&b, &view{
		Page:       p,
		Style:      template.CSS(pageCSS),
		Script:     template.JS(script),
		Data:       template.JS(encoded),
		Listing:    rows,
		StyleHash:  hash(pageCSS),
		ScriptHash: hash(script),
		Counts:     p.Count(),
	})
	if err != nil {
		return nil, err
	}
	return visible(b.Bytes()), nil
}

// dataBytes keeps the whole page below 8 MiB.
const dataBytes = 7<<20 + 1<<18

func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// visible replaces invisible characters and invalid UTF-8.
func visible(text []byte) []byte {
	bad := func(r rune) bool {
		return r != '\n' && (r == utf8.RuneError || r == 0x2028 || r == 0x2029 || isHidden(r))
	}
	if bytes.IndexFunc(text, bad) < 0 {
		return text
	}
	return bytes.Map(func(r rune) rune {
		if bad(r) {
			return utf8.RuneError
		}
		return r
	}, text)
}

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
