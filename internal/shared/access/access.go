package access

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Request is one request before it is sent.
type Request struct {
	// URL is what is requested: of a repository, of a chart repository's file, of an API, of a cluster.
	URL string
	// From are the URLs whose answers led to URL by redirects, an index, a realm or a next page, the first one first. There
	// is none for a URL of the configuration. A first one that begins with oci:// is the repository of a registry, whose
	// API's URLs follow from it.
	From []string
	// Redirect says that the last of From redirects to URL.
	Redirect bool
	// Sources are the beginnings of URLs that may be requested. nil is any: then an answer leads to public addresses only.
	Sources []string
	// PlainFor is the URL whose origin gets the plain credentials: that of the GitOps repository. "" is none.
	PlainFor string
}

// Login says which credentials a request gets: those of an index into the prefixes, or one of the following.
type Login int

// Logins that are no index.
const (
	Anonymous Login = -1
	Plain     Login = -2
)

// Grant is what a request that may be sent gets.
type Grant struct {
	Login Login
	// Scope is the prefix that the login is for. Requests that follow get it only within the scope.
	Scope Location
	// Keeps says that the request may keep the credentials that the first of From gets, from wherever they are: the URL has
	// its origin and its prefix. It is true of URLs of the configuration.
	Keeps bool
	// PublicOnly refuses connections to private and loopback addresses, whatever name leads to them.
	PublicOnly bool
	// Withheld is why the plain credentials are not sent; "" where they are, or are not for this URL.
	Withheld string
}

// ErrDenied is the error of a URL that must not be requested.
var ErrDenied = errors.New("not requested")

func deniedf(format string, arguments ...any) error {
	return fmt.Errorf("%w: %w", ErrDenied, fmt.Errorf(format, arguments...))
}

// Decide decides whether a URL may be requested, and which credentials the request gets. prefixes are the URLs that
// credentials are for, in the order of Login. An error is [ErrDenied] and says what to do.
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

// choose finds the credentials of a URL that may be requested.
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

// decideAnswered decides about a URL that an answer names. What led to it has to lead there from each step of the way.
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

// decideStep decides whether an answer of one URL may lead to another one.
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
		if IsPrivateHost(to.host) {
			return denied, deniedf(
				"%s leads to %s, which is not a public address; if it is meant to, add its URL to the sources of the workspace, or to git.credentials of the provider",
				from.Server(),
				to.Server(),
			)
		}
		grant.PublicOnly = true
	}
	before, err := choose(asked, request.PlainFor, prefixes)
	grant.Keeps = err == nil && isSame && before.Login == grant.Login
	return grant, nil
}

// decideRegistry decides about a URL of the registry itself: what is below the repository gets its credentials, and so does
// the realm. A redirect leads to neither of them.
func decideRegistry(request Request, from, to Location, prefixes []string) (Grant, error) {
	denied := Grant{Login: Anonymous}
	name, isAPI := RepositoryOfAPI("/" + to.Path())
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

// asked is the location in the scheme of the requests: registries are asked by https, and on this machine by http.
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

// dockerHub are the servers of docker.io: of its API, and of its realm.
var dockerHub = []string{"docker.io", "registry-1.docker.io", "auth.docker.io"}

// isServedBy reports whether a URL is one of the registry.
func (l Location) isServedBy(to Location) bool {
	asked := l.asked()
	if slices.Contains(dockerHub, asked.host) && slices.Contains(dockerHub, to.host) {
		asked.host = to.host
	}
	return asked.hasOriginOf(to)
}

// RepositoryOfAPI is the repository that a path of a registry's API is about.
func RepositoryOfAPI(path string) (name string, ok bool) {
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

// isUpgrade reports whether a URL is that of the same server by https instead of http.
func isUpgrade(from, to Location) bool {
	return from.host == to.host && from.scheme == "http" && from.port == "80" && to.scheme == "https" && to.port == "443"
}

// isWithin reports whether a URL is within the sources.
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

// IsWithin reports whether a URL begins with one of some prefixes: with the scheme, the host and each segment of the path. A
// URL that normalization would change is within none.
func IsWithin(prefixes []string, raw string) bool {
	at, err := Parse(raw)
	if err != nil || at.IsLocal() || strings.Contains(raw, "*") { // which agents read as more than itself
		return false
	}
	within, err := isWithin(prefixes, at)
	return err == nil && within
}

// Hops are the URLs whose redirects led to a request, the first one first.
func Hops(request *http.Request) []*url.URL {
	var hops []*url.URL
	for ; request.Response != nil && request.Response.Request != nil; request = request.Response.Request {
		hops = append(hops, request.Response.Request.URL)
	}
	slices.Reverse(hops)
	return hops
}

// outside is the error of a URL that is not within the sources. It repeats no path, which may hold a secret.
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

// DefaultSSHUser is the user of Git hosts.
const DefaultSSHUser = "git"
