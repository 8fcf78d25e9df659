// Package source reads files of any Git repository at a ref: control planes, the
// workloads of teams. It selects them by patterns, within limits. It knows neither
// Terraform nor fleets.
package source

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Query says which files are read.
type Query struct {
	URL string
	// Ref is a branch, a tag or the full id of a commit; "" is the default branch.
	Ref string
	// Path is the folder that files are read from, and that their paths are relative
	// to; "" and "." are the root.
	Path string
	// Include and Exclude are patterns of paths below Path. Without Include it is
	// every file. See pattern.
	Include []string
	Exclude []string
	Limits  Limits
	// Sources are the beginnings of the URLs that may be requested; nil: any.
	Sources []string
}

// Limits bound what is read; the zero value is DefaultLimits.
type Limits struct {
	Files int // how many files
	Bytes int // of all of them together
}

// Bounds of limits.
var (
	DefaultLimits = Limits{Files: 5_000, Bytes: 8 << 20}
	MaxLimits     = Limits{Files: 100_000, Bytes: 64 << 20}
)

// Files is what was read.
type Files struct {
	// Commit is the id of the commit that the ref was at.
	Commit string
	// Texts are the files by their paths below the query's path.
	Texts map[string]string
}

// An Error is what is wrong with an attribute of a query: url, ref, path, include,
// exclude, sources or limits.
type Error struct {
	Attribute string
	Summary   string
	Detail    string // a sentence or several
}

func (e *Error) Error() string { return e.Summary + ": " + e.Detail }

// Client reads files. It is safe for concurrent use.
type Client struct {
	git         *git.Client
	credentials git.Credentials
}

// NewClient returns a Client. It makes no request.
func NewClient(client *git.Client, credentials git.Credentials) *Client {
	return &Client{git: client, credentials: credentials}
}

// Check reports what is wrong with a query, without any request.
func (q Query) Check() []*Error {
	_, found := q.search()
	return found
}

// search is the search for what a query asks for, and what is wrong with the query.
func (q Query) search() (s *search, found []*Error) {
	report := func(attribute, summary string, err error) {
		if err != nil {
			found = append(found, &Error{attribute, summary, err.Error()})
		}
	}
	if err := git.CheckURL(q.URL); err != nil {
		report("url", "Invalid URL", err)
	} else if _, err := access.Decide(access.Request{URL: q.URL, Sources: q.Sources}, nil); err != nil {
		report("url", "URL is outside of the sources", err)
	}
	for _, source := range q.Sources {
		_, err := access.Parse(source)
		report("sources", "Invalid sources", err)
	}
	report("ref", "Invalid ref", git.CheckRef(q.Ref))
	s = &search{limits: cmp.Or(q.Limits, DefaultLimits), found: map[string]git.Entry{}}
	var err error
	s.base, err = cleanPath(q.Path)
	report("path", "Invalid path", err)
	if q.Include == nil {
		q.Include = []string{anyDepth}
	}
	s.include, err = parsePatterns(q.Include)
	if len(q.Include) == 0 {
		err = errors.New("the list is empty: leave it out to read every file")
	}
	report("include", "Invalid pattern", err)
	s.exclude, err = parsePatterns(q.Exclude)
	report("exclude", "Invalid pattern", err)
	return s, found
}

// cleanPath is a path as it is in a repository, from what people and Kalypso
// write: "./workloads/" is "workloads".
func cleanPath(path string) (string, error) {
	var clean []string
	if strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("path %q begins with a slash; it is relative to the root of the repository, so remove the slash", path)
	}
	if len(path) > maxPath {
		return "", fmt.Errorf("the path is longer than %d bytes", maxPath)
	}
	for segment := range strings.SplitSeq(path, "/") {
		switch {
		case segment == "" || segment == ".":
		case segment == "..":
			return "", fmt.Errorf("path %q leads out of the repository (\"..\")", path)
		case !utf8.ValidString(segment) || strings.ContainsFunc(segment, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.Contains(segment, `\`):
			return "", fmt.Errorf("path %q has a backslash or a control character", path)
		default:
			clean = append(clean, segment)
		}
	}
	return strings.Join(clean, "/"), nil
}

const maxPath = 4096

// Read reads the files of a query that Check has found nothing wrong with. All
// that matches has to be text: what is not is an error that names it.
//
// Errors: *Error at an attribute; else what is wrong with the repository, as
// git.Remote.Describe says it.
func (c *Client) Read(ctx context.Context, query Query) (Files, error) {
	remote := git.Remote{URL: query.URL, Credentials: c.credentials, Sources: query.Sources}
	files, err := c.read(ctx, remote, query)
	var wrong *Error
	if err == nil || errors.As(err, &wrong) {
		return files, err
	}
	return Files{}, remote.Describe(err)
}

func (c *Client) read(ctx context.Context, remote git.Remote, query Query) (Files, error) {
	s, wrong := query.search()
	if len(wrong) > 0 {
		return Files{}, wrong[0]
	}
	// The root tree alone: how much is below is not known. Each level that matches
	// takes one more request.
	tip, err := c.git.OpenRef(ctx, remote, query.Ref, 1)
	if missing := (*git.RefError)(nil); errors.As(err, &missing) {
		return Files{}, &Error{"ref", "Ref does not exist", remote.Describe(missing).Error()}
	}
	if err != nil {
		return Files{}, err
	}
	defer tip.Close()
	s.tip = tip
	found, err := s.find(ctx)
	if err != nil {
		return Files{}, err
	}
	texts, err := s.texts(ctx, found)
	if err != nil {
		return Files{}, err
	}
	c.git.Log(ctx, remote, "read files of a repository", map[string]any{"commit": tip.Commit.String(), "files": len(texts)})
	return Files{Commit: tip.Commit.String(), Texts: texts}, nil
}

// chunk is how many files one request fetches: enough for nearly all queries, and
// few enough to notice a limit early.
const chunk = 1_000

// texts fetches the files and checks that they are text.
func (s *search) texts(ctx context.Context, found map[string]git.Entry) (map[string]string, error) {
	texts := make(map[string]string, len(found))
	var binary, stored []string
	left := s.limits.Bytes
	for paths := range slices.Chunk(slices.Sorted(maps.Keys(found)), chunk) {
		ids := make([]git.Hash, len(paths))
		for i, path := range paths {
			ids[i] = found[path].ID
		}
		if err := s.tip.Need(ctx, ids); err != nil {
			return nil, err
		}
		for _, path := range paths {
			content, err := s.tip.Blob(found[path].ID)
			if err != nil {
				return nil, err
			}
			if left -= len(content); left < 0 {
				return nil, &Error{
					"limits",
					"Files are too large",
					fmt.Sprintf("The files that match have more than %d bytes in all, which is the limit. "+
						"Narrow path or include, or raise limits.bytes.", s.limits.Bytes),
				}
			}
			switch {
			case !utf8.Valid(content):
				binary = append(binary, fmt.Sprintf("%q", path))
			case bytes.HasPrefix(content, []byte("version https://git-lfs.github.com/spec/")):
				stored = append(stored, fmt.Sprintf("%q", path))
			}
			texts[path] = string(content)
		}
	}
	switch {
	case len(binary) > 0:
		return nil, s.unreadable("Files are not text", fmt.Sprintf("Not UTF-8: %s.", wording.List(binary, wording.Named)))
	case len(stored) > 0:
		return nil, s.unreadable(
			"Files are in Git LFS",
			fmt.Sprintf("The repository has only pointers to these files: %s.", wording.List(stored, wording.Named)),
		)
	}
	return texts, nil
}

// unreadable is an error about files that match and cannot be returned as text.
func (s *search) unreadable(summary, which string) *Error {
	return &Error{"include", summary, which + " Only text can be read: narrow include, or exclude these files."}
}
