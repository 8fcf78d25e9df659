// Package access decides whether a URL may be requested, and chooses the credentials. All code that opens a connection calls
// [Decide]. The package is pure: it reads URLs as text, resolves no names and never sees a secret.
//
// Credentials belong to a URL prefix, and the longest one wins. Plain credentials belong to the origin of [Request].PlainFor. If
// there are sources, a URL is requested only within them.
//
// A URL from a server's answer gets no credentials, unless it has the same origin and prefix. An answer never leads from https to
// http, and never from another server to a private address. A URL that normalization would change is an error.
package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Request describes one request before it is sent.
type Request struct {
	URL string
	// From lists the URLs whose answers led to URL, in order; none for a URL of the configuration. A first one with oci:// names
	// a repository of a registry: the URLs of the registry's API follow from it.
	From     []string
	Redirect bool
	// Sources lists the allowed URL prefixes. nil allows any URL; answers then lead to public addresses only.
	Sources []string
	// PlainFor is the URL of the GitOps repository, whose origin gets the plain credentials; "" for none.
	PlainFor string
}

// Login is the index of a prefix, or a constant below.
type Login int

// Logins without an index.
const (
	Anonymous Login = -1
	Plain     Login = -2
)

// Grant holds the credentials and limits of an allowed request.
type Grant struct {
	Login Login
	Scope Location
	// Keeps allows the request to keep the credentials of the first URL in From, because both share origin and prefix.
	Keeps bool
	// PublicOnly refuses private and loopback addresses under any name.
	PublicOnly bool
	// Withheld explains why the plain credentials are not sent to their own URL; "" if they are.
	Withheld string
}

// ErrDenied means that a URL must not be requested.
var ErrDenied = errors.New("not requested")

func deniedf(format string, arguments ...any) error {
	return fmt.Errorf("%w: %w", ErrDenied, fmt.Errorf(format, arguments...))
}

// Decide decides whether a URL may be requested, and chooses the credentials by their URL prefixes, in the order of Login. Errors
// wrap [ErrDenied] and name the remedy.
func Decide(request Request, prefixes []string) (Grant, error) {
	if len(request.From) > 0 {
		return decideAnswered(request, prefixes)
	}
	to, err := Parse(request.URL)
	if err != nil {
		return Grant{Login: Anonymous}, fmt.Errorf("%w: %w", ErrDenied, err)
	}
	if request.Sources != nil {
		if within, err := isWithin(request.Sources, to); err != nil || !within {
			return Grant{Login: Anonymous}, outside(to, request.Sources)
		}
	}
	if to.IsLocal() {
		return Grant{Login: Anonymous}, nil
	}
	grant, err := choose(to, request.PlainFor, prefixes)
	grant.Keeps = err == nil
	return grant, err
}

func choose(to Location, plainFor string, prefixes []string) (Grant, error) {
	if to.scheme == "ssh" && to.user == "" {
		to.user = DefaultSSHUser
	}
	grant := Grant{Login: Anonymous}
	for i, text := range prefixes {
		prefix, err := Parse(text)
		if err != nil || !prefix.hasOriginOf(to) {
			continue
		}
		if to.unclear != nil && len(prefix.segments) > 0 {
			return Grant{Login: Anonymous}, deniedf("credentials are for a part of %s, and %w", to.Server(), to.unclear)
		}
		if prefix.holds(to) && (grant.Login == Anonymous || prefix.isLonger(grant.Scope)) {
			grant.Login, grant.Scope = Login(i), prefix
		}
	}
	if grant.Login != Anonymous || plainFor == "" {
		return grant, nil
	}
	own, err := Parse(plainFor)
	switch {
	case err != nil:
		return Grant{Login: Anonymous}, deniedf("the plain credentials belong to a URL that cannot be used: %w", err)
	case !own.hasOriginOf(to):
	case to.scheme == "http" && !to.isLoopback():
		grant.Withheld = "credentials without a URL are sent by https and to this machine only"
	default:
		grant.Login, grant.Scope = Plain, Location{scheme: to.scheme, host: to.host, port: to.port}
	}
	return grant, nil
}

// decideAnswered requires that every URL in From may lead to the URL.
func decideAnswered(request Request, prefixes []string) (Grant, error) {
	denied := Grant{Login: Anonymous}
	to, err := parseAnswered(request.URL)
	if err != nil {
		return denied, deniedf("the server names a URL that cannot be used: %w", err)
	}
	var grant Grant
	var first Location
	for i, text := range request.From {
		from, err := parseAnswered(text)
		if err != nil {
			return denied, deniedf("the URL that led there cannot be used: %w", err)
		}
		if i == 0 {
			first = from
		} else if first.scheme == "oci" && first.isServedBy(from) {
			continue // a request of the registry's API
		}
		step, err := decideStep(request, from, to, prefixes)
		if err != nil {
			return denied, err
		}
		if i == 0 {
			grant = step
			continue
		}
		grant.PublicOnly, grant.Keeps = grant.PublicOnly || step.PublicOnly, grant.Keeps && step.Keeps
	}
	if !grant.Keeps {
		grant.Login, grant.Scope, grant.Withheld = Anonymous, Location{}, ""
	}
	return grant, nil
}

func decideStep(request Request, from, to Location, prefixes []string) (Grant, error) {
	denied, asked := Grant{Login: Anonymous}, from.asked()
	switch {
	case !to.IsWeb():
		return denied, deniedf("%s names a URL of %s; only https and http are followed", from.Server(), to.scheme)
	case asked.scheme == "https" && to.scheme == "http":
		return denied, deniedf("%s leads from https to http at %s, where anyone on the way can change the answer", from.Server(), to.Server())
	case from.scheme == "oci" && from.isServedBy(to):
		return decideRegistry(request, from, to, prefixes)
	}
	if request.Sources != nil {
		if within, err := isWithin(request.Sources, to); err != nil {
			return denied, err
		} else if !within {
			return denied, fmt.Errorf("%w; %s led there", outside(to, request.Sources), from.Server())
		}
	}
	grant, err := choose(to, request.PlainFor, prefixes)
	if err != nil {
		return denied, err
	}
	isSame := to.hasOriginOf(asked)
	if request.Sources == nil && !isSame && grant.Login == Anonymous && !isUpgrade(asked, to) {
		if isPrivateHost(to.host) {
			return denied, deniedf(
				"%s leads to %s, which is not a public address; if it is meant to, add its URL to the sources of the workspace, "+
					"or to git.credentials of the provider",
				from.Server(), to.Server(),
			)
		}
		grant.PublicOnly = true
	}
	before, err := choose(asked, request.PlainFor, prefixes)
	grant.Keeps = err == nil && isSame && before.Login == grant.Login
	return grant, nil
}

// decideRegistry gives the repository's credentials to URLs below the repository and to the realm, except after a redirect
// outside the API.
func decideRegistry(request Request, from, to Location, prefixes []string) (Grant, error) {
	denied := Grant{Login: Anonymous}
	name, isAPI := repositoryOfAPI("/" + to.Path())
	switch {
	case to.unclear != nil:
		return denied, deniedf("%s names a URL that cannot be used: %w", from.Server(), to.unclear)
	case isAPI && name != from.Path():
		return denied, deniedf("%s leads to another repository, %q", from.Server(), name)
	case !isAPI && request.Redirect:
		return denied, nil
	}
	grant, err := choose(from.asked(), "", prefixes)
	grant.Keeps = err == nil
	return grant, err
}

// asked returns the location with the scheme of its requests: for a registry https, or http on this machine.
func (l Location) asked() Location {
	if l.scheme != "oci" {
		return l
	}
	isDefault := l.port == defaultPorts["oci"]
	l.scheme = "https"
	if l.isLoopback() {
		l.scheme = "http"
	}
	if isDefault {
		l.port = defaultPorts[l.scheme]
	}
	return l
}

// dockerHub lists docker.io and the servers of its API and its realm.
var dockerHub = []string{"docker.io", "registry-1.docker.io", "auth.docker.io"}

func (l Location) isServedBy(to Location) bool {
	asked := l.asked()
	if slices.Contains(dockerHub, asked.host) && slices.Contains(dockerHub, to.host) {
		asked.host = to.host
	}
	return asked.hasOriginOf(to)
}

// repositoryOfAPI returns the repository in a path of a registry's API.
func repositoryOfAPI(path string) (name string, ok bool) {
	below, ok := strings.CutPrefix(path, "/v2/")
	if !ok {
		return "", false
	}
	for _, part := range []string{"/tags/", "/manifests/", "/blobs/", "/referrers/"} {
		if i := strings.LastIndex(below, part); i > 0 {
			return below[:i], true
		}
	}
	return "", false
}

func isUpgrade(from, to Location) bool {
	return from.host == to.host && from.scheme == "http" && from.port == "80" && to.scheme == "https" && to.port == "443"
}

func isWithin(sources []string, to Location) (bool, error) {
	for _, text := range sources {
		source, err := Parse(text)
		if err != nil || !source.hasOriginOf(to) {
			continue
		}
		if to.unclear != nil && len(source.segments) > 0 {
			return false, deniedf("a part of %s is among the sources, and %w", to.Server(), to.unclear)
		}
		if source.holds(to) {
			return true, nil
		}
	}
	return false, nil
}

// IsWithin reports whether a URL begins with a prefix, by scheme, host and path segments. A URL that normalization would change
// never matches.
func IsWithin(prefixes []string, raw string) bool {
	at, err := Parse(raw)
	if err != nil || at.IsLocal() || strings.Contains(raw, "*") { // agents treat "*" as a wildcard
		return false
	}
	within, err := isWithin(prefixes, at)
	return err == nil && within
}

// Hops returns the URLs whose redirects led to a request.
func Hops(request *http.Request) []*url.URL {
	var hops []*url.URL
	for ; request.Response != nil && request.Response.Request != nil; request = request.Response.Request {
		hops = append(hops, request.Response.Request.URL)
	}
	slices.Reverse(hops)
	return hops
}

// outside omits the path, which may contain a secret.
func outside(to Location, sources []string) error {
	where := "a path on this machine"
	if !to.IsLocal() {
		where = fmt.Sprintf("a URL at %s://%s", to.scheme, to.Server())
	}
	if len(sources) == 0 {
		return deniedf("%s is not among the sources of the workspace, which has none", where)
	}
	return deniedf("%s is not among the sources of the workspace, which are %s; add the beginning of the URL to them, if it belongs there",
		where, wording.List(sources, wording.Named))
}

// DefaultSSHUser is the ssh user of Git hosts.
const DefaultSSHUser = "git"

// notPublic lists prefixes of RFC 6890 that netip does not recognize.
var notPublic = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("100.64.0.0/10"), netip.MustParsePrefix("192.0.0.0/24"),
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.18.0.0/15"), netip.MustParsePrefix("198.51.100.0/24"),
	netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("240.0.0.0/4"), netip.MustParsePrefix("64:ff9b:1::/48"),
	netip.MustParsePrefix("::/96"), netip.MustParsePrefix("100::/64"), netip.MustParsePrefix("2001::/23"),
	netip.MustParsePrefix("2001:db8::/32"), netip.MustParsePrefix("fec0::/10"),
}

// embedded lists IPv6 prefixes with an IPv4 address inside, and its first byte.
var embedded = map[netip.Prefix]int{netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("2002::/16"): 2}

// IsPublic reports whether an address belongs to the Internet: neither private, loopback, link-local nor reserved.
func IsPublic(address netip.Addr) bool {
	address = address.Unmap()
	if !address.IsValid() || address.IsPrivate() || !address.IsGlobalUnicast() {
		return false
	}
	for _, prefix := range notPublic {
		if prefix.Contains(address) {
			return false
		}
	}
	for prefix, at := range embedded {
		if prefix.Contains(address) {
			bytes := address.As16()
			return IsPublic(netip.AddrFrom4([4]byte(bytes[at : at+4])))
		}
	}
	return true
}

// isPrivateHost reports whether a name alone is not on the Internet: an address that is not public, localhost, or a name without
// a dot.
func isPrivateHost(host string) bool {
	if address, err := netip.ParseAddr(host); err == nil {
		return !IsPublic(address)
	}
	return host == "localhost" || strings.HasSuffix(host, ".localhost") || !strings.Contains(host, ".")
}
