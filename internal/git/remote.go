package git

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unicode"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
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
	hostPattern   = regexp.MustCompile(`^(?i:[a-z0-9-]+(\.[a-z0-9-]+)*\.[a-z]{2,}/|[a-z0-9-]+(\.[a-z0-9-]+)*:[0-9]+/)`)
)

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
	scheme := ""
	if found := schemePattern.FindStringSubmatch(raw); found != nil {
		scheme = strings.ToLower(found[1])
	}
	switch scheme {
	case "http", "https", "ssh":
	case "file":
		return checkFileURL(raw)
	case "":
		if err := checkForm(raw); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the URL's scheme %q is not supported; use https://, http://, ssh://, file:// or a local path", scheme)
	}
	at, err := access.Parse(raw)
	if err != nil || at.IsLocal() {
		return err
	}
	return checkRepositoryPath(at)
}

// checkForm recognizes URLs without a scheme that would be read as a local path or as host:path.
func checkForm(raw string) error {
	host := hostPattern.FindString(raw)
	switch {
	case helperPattern.MatchString(raw):
		return errors.New("the URL names a remote helper (\"helper::address\"); use https://, http://, ssh://, file:// or a local path")
	case host != "":
		return fmt.Errorf("the URL has no scheme: write \"https://%[1]s\", \"ssh://git@%[1]s\", or, for a folder, \"./%[1]s\"", raw)
	case runtime.GOOS != "windows" && drivePattern.MatchString(raw):
		return errors.New("the URL looks like a path on Windows; for ssh use ssh://host/path")
	}
	return nil
}

func checkFileURL(raw string) error {
	parsed, err := url.Parse(raw)
	switch {
	case err != nil:
		return errors.New("the URL cannot be parsed") // its error repeats the URL
	case parsed.User != nil || parsed.Host != "" && parsed.Host != "localhost":
		return errors.New("the file URL names a host; a local repository is file:///path")
	case strings.ContainsAny(raw, "?#"):
		return errors.New("the file URL has a query or a fragment; remove it")
	case strings.Trim(parsed.Path, "/") == "":
		return errors.New("the file URL has no path")
	case !wording.IsLine(parsed.Path):
		return errors.New("the URL has an encoded control character")
	}
	return nil
}

// checkRepositoryPath refuses an empty path, and for ssh text with a meaning for a shell or git on the server.
func checkRepositoryPath(at access.Location) error {
	path := at.Path()
	switch {
	case path == "":
		return errors.New("the URL has no path to a repository")
	case strings.ContainsAny(path, "?#"):
		return errors.New("the URL has an encoded \"?\" or \"#\"")
	case at.IsWeb():
		return nil
	case strings.HasPrefix(path, "-"):
		return errors.New("the URL's path begins with a dash")
	case strings.ContainsAny(path, "'!\"<>^`{|}"):
		return errors.New("the URL's path has one of ' ! \" < > ^ ` { | }, which ssh does not carry safely")
	}
	return nil
}

// Credentials are the logins for servers, between which package access chooses.
type Credentials struct {
	// Login is for the origin of the GitOps repository.
	Login
	// ByURL is for servers, groups or repositories. The longest prefix wins.
	ByURL []URLCredentials
}

// URLCredentials are for the repositories below a URL.
type URLCredentials struct {
	// URL is the prefix: https://git.example.com/platform matches https://git.example.com/platform/gitops.git, but not
	// https://git.example.com/platform-evil. ssh:// and host:path are equal, and match any user unless the prefix has one.
	URL string
	Login
}

// Login authenticates to one server.
type Login struct {
	// A Token wins over a Password.
	Username string
	Password string
	Token    string
	// App gets tokens for http, which only GitHub receives.
	App *forge.GitHubApp
	SSH SSHCredentials
}

// Web returns the credentials for http and for APIs of Git hosts.
func (l Login) Web() forge.Credentials {
	return forge.Credentials{Username: l.Username, Password: l.Password, Token: l.Token, App: l.App}
}

// Format hides the secrets from every verb.
func (Credentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(credentials)") }

// Format hides the secrets from every verb.
func (Login) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(credentials)") }

// Check returns an error for an invalid or duplicate prefix. The error contains no credentials.
func (c Credentials) Check() error {
	var seen []access.Location
	for _, by := range c.ByURL {
		if err := CheckCredentialsURL(by.URL); err != nil {
			return fmt.Errorf("credentials: %w", err)
		}
		at, _ := access.Parse(by.URL)
		if slices.ContainsFunc(seen, at.Equal) {
			return fmt.Errorf("credentials: there are two for %q", by.URL)
		}
		seen = append(seen, at)
	}
	return nil
}

// CheckCredentialsURL returns an error, without the URL and its secrets, unless the prefix is a repository, group or server.
func CheckCredentialsURL(raw string) error {
	trimmed := strings.TrimRight(raw, "/")
	if _, rest, ok := strings.Cut(trimmed, "://"); ok && !strings.Contains(rest, "/") {
		trimmed += "/any" // a server
	}
	if err := CheckURL(trimmed); err != nil {
		return err
	}
	at, err := access.Parse(raw)
	switch {
	case err != nil:
		return err
	case at.IsLocal():
		return errors.New("the URL is of a local repository, which needs no credentials; use https://, http:// or ssh://")
	}
	return nil
}

// Permit allows a request.
type Permit struct {
	access.Grant
	Login Login
}

// Decide adds the login to [access.Decide].
func (c Credentials) Decide(request access.Request) (Permit, error) {
	prefixes := make([]string, len(c.ByURL))
	for i, by := range c.ByURL {
		prefixes[i] = by.URL
	}
	grant, err := access.Decide(request, prefixes)
	permit := Permit{Grant: grant}
	switch {
	case err != nil:
		return permit, err
	case grant.Login == access.Plain:
		permit.Login = c.Login
	case grant.Login >= 0:
		permit.Login = c.ByURL[grant.Login].Login
		// Host keys are no secret, so one list is enough.
		if ssh := &permit.Login.SSH; ssh.KnownHosts == "" && ssh.KnownHostsFile == "" {
			ssh.KnownHosts, ssh.KnownHostsFile = c.SSH.KnownHosts, c.SSH.KnownHostsFile
		}
	case c.Login.Web() == forge.Credentials{}:
		permit.Withheld = ""
	}
	if app := permit.Login.App; app != nil && grant.Scope.IsWeb() && !app.Serves(request.URL) {
		permit.Login.App, permit.Withheld = nil, "those of the GitHub App are for "+app.Server()+": set url of github_app"
	}
	return permit, nil
}

// Web returns the credentials for http to a repository and its Git host's API. plainFor is the URL if it is the GitOps
// repository.
func (c Credentials) Web(repository, plainFor string) forge.Credentials {
	permit, err := c.Decide(access.Request{URL: repository, PlainFor: plainFor})
	if err != nil {
		return forge.Credentials{}
	}
	return permit.Login.Web()
}

// Spelling normalizes scheme, user, default port, .git and local paths. Different spellings may still name one repository.
func Spelling(repository string) string {
	if at, err := access.Parse(repository); err == nil && !at.IsLocal() {
		return at.Server() + "/" + strings.TrimSuffix(at.Path(), ".git")
	}
	directory, isLocal, err := Remote{URL: repository}.local()
	if err != nil || !isLocal {
		return repository
	}
	if resolved, err := filepath.EvalSymlinks(directory); err == nil {
		directory = resolved
	}
	return "file:" + filepath.ToSlash(directory)
}

// Scrub replaces the credentials in a text.
func (c Credentials) Scrub(text string) string {
	logins := []Login{c.Login}
	for _, by := range c.ByURL {
		logins = append(logins, by.Login)
	}
	for _, login := range logins {
		secrets := slices.Concat(login.App.Secrets(), secret.KeyForms(login.SSH.Key), []string{login.Password, login.Token, login.SSH.Passphrase})
		text = secret.NewScrubber(secrets, append(forge.TokenUsers(), login.Username)...).Scrub(text)
	}
	return text
}
