package report_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/views/report"
)

func TestLinksAreAddressesWithPlaceholders(t *testing.T) {
	t.Parallel()
	for pattern, want := range map[string]string{
		"https://logs.example.com/{cluster}?q={commit}#{cluster_type}": "",
		"https://{cluster}.example.com:8443/":                          "",
		"https://example.com/a%7Bb":                                    "",
		"http://example.com/":                                          "must begin with https://",
		"javascript:alert({cluster})":                                  "must begin with https://",
		"HTTPS://example.com/":                                         "must begin with https://",
		"https:///x":                                                   "is not a URL such as https://logs.example.com/{cluster}",
		"https://exa mple.com/":                                        "is not a URL such as",
		"https://example.com/{Cluster}":                                `has the placeholder "{Cluster}", which is none of {environment}, {cluster}, {cluster_type}, {commit}`,
		"https://example.com/{}":                                       `has the placeholder "{}"`,
		"https://example.com/{cluster":                                 "has a brace that belongs to no placeholder",
		"https://example.com/{cluster}}":                               "has a brace that belongs to no placeholder",
		"https://user@example.com/":                                    "must have no credentials",
		"https://{cluster}:x@example.com/":                             "must have no credentials",
		"https://example.com/" + strings.Repeat("x", 2000):             "has 2020 bytes; the most is 2000",
	} {
		got := ""
		if err := report.CheckLink(pattern, report.OfCluster); err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q", pattern, got, want)
		}
	}
}
