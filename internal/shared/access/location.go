package access

import (
	"cmp"
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
)

// Location is a URL or URL prefix in comparable form.
type Location struct {
	scheme, user, host, port string
	segments                 []string // of the path, decoded
	// unclear explains why the path of an answered URL cannot be compared.
	unclear error
}

const (
	local      = "file"
	beginLocal = "a local path with a colon begins with ./"
)

var defaultPorts = map[string]string{"http": "80", "https": "443", "ssh": "22", "oci": "443", "git": "9418"}

var (
	schemePattern = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	helperPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+.-]*::`)
	scpPattern    = regexp.MustCompile(`^[^/\\:]*:`)
	drivePattern  = regexp.MustCompile(`^[A-Za-z]:[/\\]`)
	userPattern   = regexp.MustCompile(`^([A-Za-z0-9_][A-Za-z0-9_.+-]*)?$`)
	hostPattern   = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)
	numberPattern = regexp.MustCompile(`^(0[xX][0-9A-Fa-f]*|[0-9]+)$`)
)

// Parse reads a URL of http, https, ssh, oci or git, or user@host:path. A local path or a file URL becomes a location without
// credentials. It refuses a URL that normalization would change: dot or empty segments, a backslash, or an encoded letter, digit,
// dot or slash. Errors never repeat the URL, which may contain a secret.
func Parse(raw string) (Location, error) {
	if user, host, path, ok := SplitSCP(raw); ok { // a percent sign escapes nothing here
		_, isScheme := defaultPorts[strings.ToLower(host)]
		first, _, _ := strings.Cut(path, "/")
		isMisread := isScheme || strings.EqualFold(host, local) || strings.Contains(first, "@") || strings.HasPrefix(path, "//")
		if isMisread || strings.HasPrefix(raw, "@") || strings.Contains(raw, "[") && !strings.Contains(host, ":") {
			return Location{}, errors.New("the URL is neither scheme://host/path nor [user@]host:path; ssh takes a key, not a password; " +
				beginLocal)
		}
		at, err := newLocation("ssh", user, host, "", (&url.URL{Path: strings.TrimPrefix(path, "/")}).EscapedPath())
		if err != nil {
			return Location{}, fmt.Errorf("%w; "+beginLocal, err)
		}
		return at, at.unclear
	}
	switch {
	case raw == "":
		return Location{}, errors.New("the URL is empty")
	case isLocal(raw):
		return Location{scheme: local}, nil
	case strings.ContainsFunc(raw, func(r rune) bool { return r >= 0x7f }):
		return Location{}, errors.New("the URL has letters outside of ASCII, which can look like others; percent-encode those of the path, " +
			"and write the host in its ASCII form (\"xn--...\")")
	case strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || strings.ContainsRune("\\\"<>^`{|}", r) }):
		return Location{}, errors.New("the URL has a character that must be percent-encoded")
	}
	parsed, err := url.Parse(raw)
	switch {
	case err != nil:
		return Location{}, errors.New("the URL cannot be parsed")
	case parsed.Opaque != "" || parsed.Hostname() == "":
		return Location{}, errors.New("the URL has no host")
	case parsed.RawQuery != "" || parsed.ForceQuery || strings.Contains(raw, "#"):
		return Location{}, errors.New("the URL has a query or a fragment; remove it")
	}
	at, err := locationOf(parsed)
	return at, cmp.Or(err, at.unclear)
}

// parseAnswered accepts a query, and a path that cannot be compared.
func parseAnswered(raw string) (Location, error) {
	parsed, err := url.Parse(raw)
	if err != nil || parsed.Opaque != "" || parsed.Hostname() == "" {
		return Location{}, errors.New("it is not a URL with a host")
	}
	if parsed.User != nil {
		return Location{}, errors.New("the URL has credentials in it")
	}
	return locationOf(parsed)
}

func locationOf(parsed *url.URL) (Location, error) {
	if strings.HasSuffix(parsed.Host, ":") {
		return Location{}, errors.New("the URL has a colon without a port")
	}
	scheme := strings.TrimPrefix(strings.ToLower(parsed.Scheme), "git+")
	_, hasPassword := parsed.User.Password()
	if hasPassword || parsed.User != nil && scheme != "ssh" {
		return Location{}, errors.New("the URL has credentials in it; remove them, and give them to the provider's git attribute")
	}
	return newLocation(scheme, parsed.User.Username(), parsed.Hostname(), parsed.Port(), parsed.EscapedPath())
}

// newLocation reports a problem of the escaped path in Location.unclear.
func newLocation(scheme, user, host, port, path string) (Location, error) {
	standard, isKnown := defaultPorts[scheme]
	at := Location{scheme: scheme, user: user, host: strings.ToLower(host), port: cmp.Or(port, standard)}
	if !isKnown {
		return Location{}, errors.New("the URL's scheme is not supported; use https://, http://, ssh:// or oci://")
	}
	if !userPattern.MatchString(user) {
		return Location{}, errors.New("the URL's user has a character other than A-Z a-z 0-9 . _ + -, or begins with one of . + -")
	}
	if number, err := strconv.ParseUint(at.port, 10, 16); err != nil || number == 0 || strconv.FormatUint(number, 10) != at.port {
		return Location{}, errors.New("the URL's port is not a number from 1 to 65535, without zeros before it")
	}
	if err := checkHost(at.host); err != nil {
		return Location{}, err
	}
	at.segments, at.unclear = segmentsOf(path)
	return at, nil
}

// checkHost accepts only the canonical spelling of a host.
func checkHost(host string) error {
	if address, err := netip.ParseAddr(host); err == nil {
		if address.Zone() != "" || address.Is4In6() || address.String() != host {
			return errors.New("the URL's address is not in its shortest form")
		}
		return nil
	}
	if !hostPattern.MatchString(host) {
		return errors.New("the URL's host is not a name or an address; a name ends without a dot")
	}
	if numberPattern.MatchString(host[strings.LastIndex(host, ".")+1:]) {
		return errors.New("the URL's host looks like an address, and is none")
	}
	return nil
}

func segmentsOf(path string) ([]string, error) {
	path = strings.TrimSuffix(strings.TrimPrefix(path, "/"), "/")
	if path == "" {
		return nil, nil
	}
	segments := strings.Split(path, "/")
	for i, escaped := range segments {
		segment, err := url.PathUnescape(escaped)
		switch {
		case err != nil:
			return nil, errors.New("the URL's path has a \"%\" that escapes nothing")
		case segment == "":
			return nil, errors.New("the URL has two slashes in a row in its path; remove one")
		case segment == "." || segment == "..":
			return nil, errors.New("the URL has a path segment \".\" or \"..\"; write the path without it")
		case strings.ContainsAny(segment, `/\`):
			return nil, errors.New("the URL's path has a backslash or an encoded slash")
		case strings.ContainsFunc(segment, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' }):
			return nil, errors.New("the URL's path has a control character or is not UTF-8")
		case hasNeedlessEscape(escaped):
			return nil, errors.New("the URL's path has an encoded letter, digit or one of \"-._~\"; write the character itself")
		}
		segments[i] = segment
	}
	return segments, nil
}

// hasNeedlessEscape reports whether an unreserved character of RFC 3986 is escaped.
func hasNeedlessEscape(escaped string) bool {
	for i := 0; i+2 < len(escaped); i++ {
		if escaped[i] != '%' {
			continue
		}
		code, err := strconv.ParseUint(escaped[i+1:i+3], 16, 8)
		c := byte(code)
		if err == nil && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("-._~", c) >= 0) {
			return true
		}
	}
	return false
}

// SplitSCP splits [user@]host:path, Git's short form for ssh, also with an IPv6 address in brackets. ok is false for other forms.
func SplitSCP(raw string) (user, host, path string, ok bool) {
	if schemePattern.MatchString(raw) || helperPattern.MatchString(raw) || !scpPattern.MatchString(raw) || isDrive(raw) {
		return "", "", "", false
	}
	host, path, _ = strings.Cut(raw, ":")
	if before, rest, hasUser := strings.Cut(raw, "@["); hasUser || raw[0] == '[' {
		if !hasUser {
			before, rest = "", raw[1:]
		}
		if address, after, isClosed := strings.Cut(rest, "]:"); isClosed {
			return before, address, after, true
		}
	}
	if before, after, hasUser := strings.Cut(host, "@"); hasUser {
		user, host = before, after
	}
	return user, host, path, true
}

func isDrive(raw string) bool { return runtime.GOOS == "windows" && drivePattern.MatchString(raw) }

func isLocal(raw string) bool {
	scheme := schemePattern.FindStringSubmatch(raw)
	if scheme != nil {
		return strings.EqualFold(scheme[1], local)
	}
	return !helperPattern.MatchString(raw)
}

// holds reports whether a URL begins with this prefix. It ignores .git at the end of both, but not within a path.
func (l Location) holds(other Location) bool {
	if !l.hasOriginOf(other) || l.user != "" && l.user != other.user || len(l.segments) > len(other.segments) {
		return false
	}
	for i, segment := range l.segments {
		at := other.segments[i]
		if i == len(l.segments)-1 && i == len(other.segments)-1 {
			segment, at = strings.TrimSuffix(segment, ".git"), strings.TrimSuffix(at, ".git")
		}
		if segment != at {
			return false
		}
	}
	return true
}

func (l Location) hasOriginOf(other Location) bool {
	return l.scheme == other.scheme && l.host == other.host && l.port == other.port
}

// Equal reports whether two URLs or prefixes differ only in spelling.
func (l Location) Equal(other Location) bool {
	return l.hasOriginOf(other) && l.user == other.user && slices.Equal(l.segments, other.segments)
}

// isLonger reports whether a prefix of the same URL is more specific.
func (l Location) isLonger(other Location) bool {
	if len(l.segments) != len(other.segments) {
		return len(l.segments) > len(other.segments)
	}
	return l.user != "" && other.user == ""
}

// IsLocal reports whether the repository is on this machine.
func (l Location) IsLocal() bool { return l.scheme == local }

// IsWeb reports whether the scheme is http or https.
func (l Location) IsWeb() bool { return l.scheme == "http" || l.scheme == "https" }

// Server returns the host, with the port unless it is the default.
func (l Location) Server() string {
	if l.port == defaultPorts[l.scheme] {
		return l.host
	}
	return l.host + ":" + l.port
}

// Path returns the decoded path without slashes around it.
func (l Location) Path() string { return strings.Join(l.segments, "/") }

// OriginOf returns scheme, host and port of an http or https URL, as a prefix for [Request].Sources.
func OriginOf(u *url.URL) string {
	return strings.ToLower(u.Scheme) + "://" + strings.ToLower(u.Host)
}

func (l Location) isLoopback() bool {
	address, err := netip.ParseAddr(l.host)
	return l.host == "localhost" || strings.HasSuffix(l.host, ".localhost") || err == nil && address.IsLoopback()
}
