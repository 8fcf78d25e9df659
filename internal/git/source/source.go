// Package source reads files of a Git repository at a ref, such as control planes and workloads, by patterns, within limits.
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

// Query selects files.
type Query struct {
	URL string
	// Ref is a branch, a tag or the full id of a commit. "" is the default branch.
	Ref string
	// Path is the folder to read, and the base of paths. "" and "." are the root.
	Path string
	// Include and Exclude are patterns of paths below Path. Default: every file.
	Include []string
	Exclude []string
	Limits  Limits
	// Sources lists the allowed URL prefixes; nil allows any URL.
	Sources []string
}

// Limits limits the files of a query.
type Limits struct {
	Files int // number of files
	Bytes int // of all files together
}

// DefaultLimits apply unless a query sets others, up to MaxLimits.
var (
	DefaultLimits = Limits{Files: 5_000, Bytes: 8 << 20}
	MaxLimits     = Limits{Files: 100_000, Bytes: 64 << 20}
)

// Files are files of a commit.
type Files struct {
	// Commit is the id of the ref's commit.
	Commit string
	// Texts maps paths below the query's path to contents.
	Texts map[string]string
}

// QueryError is an error at an attribute of a query, such as url or include.
type QueryError struct {
	Attribute string
	Summary   string
	Detail    string // sentences
}

func (e *QueryError) Error() string { return e.Summary + ": " + e.Detail }

// FileReader reads files. It is safe for concurrent use.
type FileReader struct {
	git         *git.Connector
	credentials git.Credentials
}

// NewReader returns a FileReader. It makes no request.
func NewReader(client *git.Connector, credentials git.Credentials) *FileReader {
	return &FileReader{git: client, credentials: credentials}
}

// Check returns all errors of a query. It makes no request.
func (q Query) Check() []*QueryError {
	_, found := q.search()
	return found
}

func (q Query) search() (s *search, found []*QueryError) {
	report := func(attribute, summary string, err error) {
		if err != nil {
			found = append(found, &QueryError{attribute, summary, err.Error()})
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

// cleanPath normalizes paths as people write them: "./workloads/" is "workloads".
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
		case !utf8.ValidString(segment) || strings.Contains(segment, `\`) ||
			strings.ContainsFunc(segment, func(r rune) bool { return r < ' ' || r == 0x7f }):
			return "", fmt.Errorf("path %q has a backslash or a control character", path)
		default:
			clean = append(clean, segment)
		}
	}
	return strings.Join(clean, "/"), nil
}

const maxPath = 4096

// Read returns the files of a query that Check accepts. The error is a *QueryError, also for a file that is not text, or is
// about the repository, from git.Remote.Describe.
func (c *FileReader) Read(ctx context.Context, query Query) (Files, error) {
	remote := git.Remote{URL: query.URL, Credentials: c.credentials, Sources: query.Sources}
	files, err := c.read(ctx, remote, query)
	var wrong *QueryError
	if err == nil || errors.As(err, &wrong) {
		return files, err
	}
	return Files{}, remote.Describe(err)
}

func (c *FileReader) read(ctx context.Context, remote git.Remote, query Query) (Files, error) {
	s, wrong := query.search()
	if len(wrong) > 0 {
		return Files{}, wrong[0]
	}
	// The depth is unknown. Each level with matches takes one more request.
	tip, err := c.git.OpenRef(ctx, remote, query.Ref, 1)
	if missing := (*git.RefError)(nil); errors.As(err, &missing) {
		return Files{}, &QueryError{"ref", "Ref does not exist", remote.Describe(missing).Error()}
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

// chunk is the number of files in one request: enough for most queries, few enough to detect a limit early.
const chunk = 1_000

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
				return nil, &QueryError{
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
		return nil, unreadable("Files are not text", "Not UTF-8", binary)
	case len(stored) > 0:
		return nil, unreadable("Files are in Git LFS", "The repository has only pointers to these files", stored)
	}
	return texts, nil
}

// unreadable returns an error about matching files that are not text.
func unreadable(summary, cause string, names []string) *QueryError {
	return &QueryError{"include", summary, fmt.Sprintf("%s: %s. Only text can be read: narrow include, or exclude these files.",
		cause, wording.List(names, wording.Named))}
}
