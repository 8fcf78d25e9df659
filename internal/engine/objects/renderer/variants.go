package renderer

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"text/template"
	"time"
	"unicode"

	"github.com/Masterminds/sprig/v3"
	"helm.sh/helm/v4/pkg/chart/common"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/served"
)

// variants replaces functions that depend on randomness, clock or cluster. The results differ between variants 0 and 1 in
// every part: a chart that renders equal objects with both always does.
type variants struct {
	variant int
	only    string // the only function with the variant (others have 0); "" for all
	offline bool   // lookups return nothing, as in `helm template`
	called  map[string]bool
	numbers *rand.Rand
}

func (r *helmRelease) newVariants(variant int, only string) *variants {
	return &variants{
		variant: variant, only: only, offline: !r.helm.OnCluster, called: map[string]bool{}, numbers: rand.New(rand.NewPCG(23, 42)),
	}
}

// record returns the variant of a called function.
func (c *variants) record(function string) int {
	c.called[function] = true
	if c.only != "" && c.only != function {
		return 0
	}
	return c.variant
}

const (
	digits  = "0123456789"
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

func (c *variants) makeText(variant, n int, alphabet string) string {
	var b strings.Builder
	for range n {
		b.WriteByte(alphabet[(c.numbers.IntN(len(alphabet))+variant)%len(alphabet)])
	}
	return b.String()
}

// variantTime differs between variants in every field.
func variantTime(variant int) time.Time {
	if variant == 0 {
		return time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
	}
	return time.Date(2037, 11, 17, 18, 49, 50, 51, time.UTC)
}

func (c *variants) random(function, alphabet string) func(int) string {
	return func(n int) string { return c.makeText(c.record(function), n, alphabet) }
}

// certificate mirrors sprig's unexported type.
type certificate struct{ Cert, Key string }

func (c *variants) pem(variant int, kind string) string {
	return fmt.Sprintf("-----BEGIN %s-----\n%s\n-----END %[1]s-----\n", kind, c.makeText(variant, 64, letters))
}

func (c *variants) certificate(function string) (certificate, error) {
	variant := c.record(function)
	return certificate{Cert: c.pem(variant, "CERTIFICATE"), Key: c.pem(variant, "RSA PRIVATE KEY")}, nil
}

func (c *variants) functions() template.FuncMap {
	var ascii strings.Builder
	for b := byte(' '); b <= '~'; b++ {
		ascii.WriteByte(b)
	}
	functions := template.FuncMap{
		"randAlphaNum": c.random("randAlphaNum", digits+letters),
		"randAlpha":    c.random("randAlpha", letters),
		"randNumeric":  c.random("randNumeric", digits),
		"randAscii":    c.random("randAscii", ascii.String()),
		"randBytes": func(n int) (string, error) {
			return base64.StdEncoding.EncodeToString([]byte(c.makeText(c.record("randBytes"), n, letters))), nil
		},
		"randInt": func(from, to int) (int, error) {
			if from >= to {
				return 0, fmt.Errorf("randInt takes a smaller and a greater number, and got %d and %d", from, to)
			}
			if c.record("randInt") == 0 {
				return from, nil
			}
			return to - 1, nil
		},
		"shuffle": func(text string) string {
			if c.record("shuffle") == 0 {
				return text
			}
			runes := []rune(text)
			slices.Reverse(runes)
			return string(runes)
		},
		"uuidv4": func() string {
			hex := c.makeText(c.record("uuidv4"), 30, "0123456789abcdef")
			return fmt.Sprintf("%s-%s-4%s-8%s-%s", hex[:8], hex[8:12], hex[12:15], hex[15:18], hex[18:])
		},
		"bcrypt":   func(string) string { return "$2a$10$" + c.makeText(c.record("bcrypt"), 53, letters) },
		"htpasswd": func(user, _ string) string { return user + ":$2a$10$" + c.makeText(c.record("htpasswd"), 53, letters) },
		"encryptAES": func(string, string) (string, error) {
			return base64.StdEncoding.EncodeToString([]byte(c.makeText(c.record("encryptAES"), 32, letters))), nil
		},
		"genPrivateKey": func(string) string { return c.pem(c.record("genPrivateKey"), "PRIVATE KEY") },
		"genCA":         func(string, int) (certificate, error) { return c.certificate("genCA") },
		"genCAWithKey":  func(string, int, string) (certificate, error) { return c.certificate("genCAWithKey") },
		"genSelfSignedCert": func(string, []any, []any, int) (certificate, error) {
			return c.certificate("genSelfSignedCert")
		},
		"genSelfSignedCertWithKey": func(string, []any, []any, int, string) (certificate, error) {
			return c.certificate("genSelfSignedCertWithKey")
		},
		"genSignedCert": func(string, []any, []any, int, any) (certificate, error) {
			return c.certificate("genSignedCert")
		},
		"genSignedCertWithKey": func(string, []any, []any, int, any, string) (certificate, error) {
			return c.certificate("genSignedCertWithKey")
		},
		"lookup": c.lookup,
		"getHostByName": func(string) string {
			if c.offline || c.record("getHostByName") == 0 {
				return ""
			}
			return "192.0.2.1"
		},
		"keys":   c.keys,
		"values": c.values,
	}
	maps.Copy(functions, c.clocks())
	return functions
}

// lookup returns nothing, or an object in variant 1.
func (c *variants) lookup(version, kind, namespace, name string) (map[string]any, error) {
	if c.offline || c.record("lookup") == 0 {
		return map[string]any{}, nil
	}
	object := map[string]any{
		"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name, "namespace": namespace}, "data": map[string]any{},
	}
	if name != "" {
		return object, nil
	}
	return map[string]any{"apiVersion": version, "kind": kind + "List", "items": []any{object}}, nil
}

// keys replaces sprig's function, whose order is random.
func (c *variants) keys(from ...map[string]any) []string {
	all := []string{}
	for _, m := range from {
		all = append(all, c.order("keys", m)...)
	}
	return all
}

func (c *variants) values(m map[string]any) []any {
	all := []any{}
	for _, key := range c.order("values", m) {
		all = append(all, m[key])
	}
	return all
}

func (c *variants) order(function string, m map[string]any) []string {
	keys := slices.Sorted(maps.Keys(m))
	if len(keys) > 1 && c.record(function) == 1 {
		slices.Reverse(keys)
	}
	return keys
}

// clocks returns the functions that read the clock, some only for arguments that are no dates.
func (c *variants) clocks() template.FuncMap {
	sprigs := sprig.TxtFuncMap()
	inZone := sprigs["dateInZone"].(func(string, any, string) string)
	roundDuration := sprigs["durationRound"].(func(any) string)
	moment := func(function string, date any) any {
		switch date.(type) {
		case time.Time, *time.Time, int64, int, int32:
			return date
		}
		return variantTime(c.record(function))
	}
	withZone := func(function string) func(string, any, string) string {
		return func(layout string, date any, zone string) string { return inZone(layout, moment(function, date), zone) }
	}
	return template.FuncMap{
		"now":            func() time.Time { return variantTime(c.record("now")) },
		"date":           func(layout string, date any) string { return inZone(layout, moment("date", date), "UTC") },
		"dateInZone":     withZone("dateInZone"),
		"date_in_zone":   withZone("date_in_zone"),
		"htmlDate":       func(date any) string { return inZone(time.DateOnly, moment("htmlDate", date), "UTC") },
		"htmlDateInZone": func(date any, zone string) string { return inZone(time.DateOnly, moment("htmlDateInZone", date), zone) },
		"ago": func(date any) string {
			now := variantTime(c.record("ago"))
			then := now
			switch date := date.(type) {
			case time.Time:
				then = date
			case int64:
				then = time.Unix(date, 0)
			case int:
				then = time.Unix(int64(date), 0)
			}
			return now.Sub(then).Round(time.Second).String()
		},
		"durationRound": func(duration any) string {
			if since, is := duration.(time.Time); is {
				return roundDuration(variantTime(c.record("durationRound")).Sub(since).String())
			}
			return roundDuration(duration)
		},
	}
}

type capabilities struct {
	*common.Capabilities
	APIVersions apiVersions
}

func (r *helmRelease) capabilities() (*capabilities, error) {
	cluster := cmp.Or(r.request.KubernetesVersion, defaultKubernetes)
	version := cmp.Or(r.helm.KubernetesVersion, cluster)
	kubernetes, err := common.ParseKubeVersion(version)
	if err != nil {
		return nil, fmt.Errorf("Kubernetes version %q: %w", version, err)
	}
	apis, missing := r.helm.APIVersions, missingAPIs(nil)
	if apis == nil {
		missing = r.missing
		if apis, err = served.APIs(cluster); err != nil {
			return nil, err
		}
		apis = slices.Concat(apis, withVersions(r.request.APIVersions))
	}
	if !r.helm.OnCluster {
		apis = slices.Concat(common.DefaultVersionSet, apis)
	}
	all := common.DefaultCapabilities.Copy()
	all.KubeVersion, all.APIVersions = *kubernetes, apis
	return &capabilities{all, newAPIVersions(apis, missing)}, nil
}

// withVersions adds "<group>/<version>" to "<group>/<version>/<kind>".
func withVersions(apis []string) []string {
	all := slices.Clone(apis)
	for _, api := range apis {
		at := strings.LastIndexByte(api, '/')
		if last := api[at+1:]; at >= 0 && last != "" && unicode.IsUpper(rune(last[0])) {
			all = append(all, api[:at])
		}
	}
	return all
}

// apiVersions replaces [common.VersionSet], with missingAPIs after its last element, within its capacity. It is a slice
// because charts range over it.
type apiVersions []any

func newAPIVersions(apis []string, missing missingAPIs) apiVersions {
	all := make(apiVersions, 0, len(apis)+1)
	for _, api := range apis {
		all = append(all, api)
	}
	return append(all, missing)[:len(apis)]
}

// Has reports whether the clusters have an API.
func (a apiVersions) Has(api string) (bool, error) {
	if slices.Contains(a, any(api)) {
		return true, nil
	}
	if len(a) < cap(a) {
		if missing, is := a[:len(a)+1][len(a)].(missingAPIs); is {
			return false, missing.add(api)
		}
	}
	return false, nil
}

// missingAPIs records APIs that neither Kubernetes nor the request has.
type missingAPIs map[string]bool

// maxMissing bounds missingAPIs. Charts have dozens.
const maxMissing = 200

func (m missingAPIs) add(api string) error {
	const longest = 500 // no API has a longer name
	if m == nil || len(api) > longest || served.IsOfKubernetes(api) {
		return nil
	}
	if m[api] = true; len(m) > maxMissing {
		return fmt.Errorf("the chart asks for more than %d API versions that its clusters do not have", maxMissing)
	}
	return nil
}
