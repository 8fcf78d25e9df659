package git

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"unicode"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

// Remote is a branch of a repository, with credentials.
type Remote struct {
	// URL is http(s)://host/path, ssh://[user@]host[:port]/path, [user@]host:path, file:///path, or a local path: absolute,
	// relative to the working directory, or ~/path.
	URL string
	// Branch is the name without refs/heads/.
	Branch      string
	Credentials Credentials
	// IsGitOps marks the GitOps repository, whose origin gets the plain credentials.
	IsGitOps bool
	// Sources are prefixes of allowed URLs; nil: any.
	Sources []string
}

func (r Remote) request() access.Request {
	request := access.Request{URL: r.URL, Sources: r.Sources}
	if r.IsGitOps {
		request.PlainFor = r.URL
	}
	return request
}

// Check makes no request.
func (r Remote) Check() error {
	return cmp.Or(CheckURL(r.URL), r.Credentials.Check(), CheckBranch(r.Branch))
}

func (r Remote) local() (string, bool, error) {
	path := r.URL
	if _, ok := parseSSH(r.URL); ok {
		return "", false, nil
	}
	if scheme := schemePattern.FindStringSubmatch(r.URL); scheme != nil {
		if !strings.EqualFold(scheme[1], "file") {
			return "", false, nil
		}
		parsed, err := url.Parse(r.URL)
		if err != nil {
			return "", false, errors.New("the URL cannot be parsed")
		}
		path = filepath.FromSlash(parsed.Path)
		if runtime.GOOS == "windows" && len(path) > 2 && path[2] == ':' {
			path = path[1:] // file:///C:/repositories/a.git
		}
	}
	absolute, err := absolutePath(path)
	if err != nil {
		return "", false, fmt.Errorf("the path cannot be made absolute: %w", err)
	}
	return absolute, true, nil
}

func absolutePath(path string) (string, error) {
	if below, ok := strings.CutPrefix(filepath.ToSlash(path), "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(home, filepath.FromSlash(below))
	}
	return filepath.Abs(path)
}

const maxURL = 2048 // every Git host and proxy accepts it

var (
	schemePattern = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9+.-]*)://`)
	helperPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9+.-]*::`)
	drivePattern  = regexp.MustCompile(`^[A-Za-z]:[/\\]`)
)

var hostPattern = regexp.MustCompile(`^(?i:[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}/|[a-z0-9-]+(\.[a-z0-9-]+)*:[0-9]+/)`)

// CheckURL returns an error for an unsupported scheme, credentials, a query, a fragment or control characters. It does not
// repeat the URL, which may contain a secret.
func CheckURL(raw string) error {
	if raw == "" {
		return errors.New("the URL is empty")
	}
	if len(raw) > maxURL {
		return fmt.Errorf("the URL is longer than %d bytes", maxURL)
	}
	for _, r := range raw {
		if unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) || r == '\ufffd' {
			return errors.New("the URL has a control character or is not UTF-8")
		}
	}
	if strings.TrimSpace(raw) != raw {
		return errors.New("the URL begins or ends with a space")
	}
	if scheme := schemePattern.FindStringSubmatch(raw); scheme != nil {
		return checkSchemeURL(strings.ToLower(scheme[1]), raw)
	}
	if helperPattern.MatchString(raw) {
		return errors.New("the URL names a remote helper (\"helper::address\"); use https://, http://, ssh://, file:// or a local path")
	}
	if found := hostPattern.FindString(raw); found != "" {
		return fmt.Errorf("the URL has no scheme: write \"https://%[1]s\", \"ssh://git@%[1]s\", or, for a folder, \"./%[1]s\"", raw)
	}
	if _, _, _, ok := access.SplitSCP(raw); ok {
		return cmp.Or(checkSCP(raw), parseError(raw))
	}
	return nil
}

func parseError(raw string) error {
	_, err := access.Parse(raw)
	return err
}

func checkSchemeURL(scheme, raw string) error {
	switch scheme {
	case "http", "https", "ssh", "file":
	default:
		return fmt.Errorf("the URL's scheme %q is not supported; use https://, http://, ssh://, file:// or a local path", scheme)
	}
	parsed, err := url.Parse(raw)
	if err != nil {
		return errors.New("the URL cannot be parsed") // its error repeats the URL
	}
	user := ""
	if scheme == "ssh" && parsed.User != nil {
		if _, secret := parsed.User.Password(); !secret {
			user, parsed.User = parsed.User.Username(), nil
		}
	}
	switch {
	case parsed.User != nil || strings.Contains(parsed.Host, "@"):
		return errors.New(
			"the URL has credentials in it; leave out what is before the \"@\", and give them to the provider's git attribute or in " +
				"FLOTILLA_GIT_TOKEN, FLOTILLA_GIT_USERNAME and FLOTILLA_GIT_PASSWORD",
		)
	case parsed.RawQuery != "" || parsed.ForceQuery:
		return errors.New("the URL has a query (\"?...\"); remove it from the URL of the repository")
	case parsed.Fragment != "" || strings.Contains(raw, "#"):
		return errors.New("the URL has a fragment (\"#...\"); remove it from the URL of the repository")
	case strings.ContainsAny(raw, " \\\"<>^`{|}"):
		return errors.New("the URL has a character that must be percent-encoded")
	}
	for _, r := range parsed.Path {
		if r < ' ' || r == 0x7f || r == '\ufffd' {
			return errors.New("the URL has an encoded control character")
		}
	}
	for _, segment := range strings.Split(parsed.Path, "/") {
		if segment == ".." || segment == "." {
			return errors.New("the URL has a path segment \".\" or \"..\"")
		}
	}
	if scheme == "file" {
		if parsed.Host != "" && parsed.Host != "localhost" {
			return errors.New("the file URL names a host; a local repository is file:///path")
		}
		if strings.Trim(parsed.Path, "/") == "" {
			return errors.New("the file URL has no path")
		}
		return nil
	}
	if parsed.Hostname() == "" {
		return errors.New("the URL has no host")
	}
	if strings.ContainsFunc(parsed.Host, func(r rune) bool { return r > unicode.MaxASCII }) {
		return errors.New("the URL's host has letters outside of ASCII, which can look like others; write it in its ASCII form (\"xn--...\")")
	}
	if port := parsed.Port(); port != "" {
		if n, err := strconv.Atoi(port); err != nil || n < 1 || n > 65535 {
			return errors.New("the URL's port is not a number from 1 to 65535")
		}
	}
	if strings.Trim(parsed.Path, "/") == "" {
		return errors.New("the URL has no path to a repository")
	}
	if strings.ContainsAny(parsed.Path, "?#") {
		return errors.New("the URL has an encoded \"?\" or \"#\"")
	}
	if scheme == "ssh" {
		return cmp.Or(checkSSH(user, parsed.Hostname(), strings.TrimPrefix(parsed.Path, "/")), parseError(raw))
	}
	return parseError(raw)
}
