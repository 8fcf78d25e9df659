package git

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Bounds that all file systems and agents support.
const (
	MaxSegment = 255  // bytes: ext4, NTFS, APFS
	maxPath    = 4096 // bytes: PATH_MAX
	MaxDepth   = 32   // segments
)

// CheckPath returns an error unless the path is safe: relative to the root, with forward slashes; "" is the root. A segment has
// 1 to 255 of [A-Za-z0-9._-], begins and ends without a dot, and is no Windows device, so no system reads it as another path.
func CheckPath(path string) error {
	if path == "" {
		return nil
	}
	if len(path) > maxPath {
		return fmt.Errorf("the path is longer than %d bytes", maxPath)
	}
	if plain := strings.Trim(strings.TrimPrefix(path, "./"), "/"); strings.HasPrefix(path, "./") && plain != "" {
		return fmt.Errorf("path %q begins with \"./\": paths are relative to the root of the repository; write %q", path, plain)
	}
	if strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return fmt.Errorf("path %q begins or ends with a slash; write %q", path, strings.Trim(path, "/"))
	}
	if strings.Count(path, "/") >= MaxDepth {
		return fmt.Errorf("the path has more than %d segments", MaxDepth)
	}
	for segment := range strings.SplitSeq(path, "/") {
		if err := CheckSegment(segment); err != nil {
			return fmt.Errorf("path %q: %w", path, err)
		}
	}
	return nil
}

// CheckName is CheckPath for one segment.
func CheckName(name string) error {
	if err := CheckSegment(name); err != nil {
		return fmt.Errorf("name %q: %w", name, err)
	}
	return nil
}

// CheckSegment is CheckName without the name in the error.
func CheckSegment(segment string) error {
	switch {
	case segment == "":
		return errors.New("a segment is empty")
	case len(segment) > MaxSegment:
		return fmt.Errorf("a segment is longer than %d bytes", MaxSegment)
	case segment[0] == '.' || segment[len(segment)-1] == '.':
		return fmt.Errorf("%q begins or ends with a dot", segment)
	}
	for i := range len(segment) {
		if !isSafe(segment[i]) {
			return fmt.Errorf("%q has a character other than A-Z a-z 0-9 . _ -", segment)
		}
	}
	if isDevice(segment) {
		return fmt.Errorf("%q is a device name on Windows", segment)
	}
	return nil
}

func isSafe(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '.' || c == '_' || c == '-'
}

// isDevice reports whether Windows opens a device for this name.
func isDevice(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	switch len(base) {
	case 3:
		return strings.EqualFold(base, "con") || strings.EqualFold(base, "prn") ||
			strings.EqualFold(base, "aux") || strings.EqualFold(base, "nul")
	case 4:
		if base[3] < '0' || base[3] > '9' {
			return false
		}
		return strings.EqualFold(base[:3], "com") || strings.EqualFold(base[:3], "lpt")
	}
	return false
}

// folded equates names that are equal on Windows, which ignores case and final dots and spaces, or on macOS, which ignores case
// and some code points.
func folded(name string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r < utf8.RuneSelf:
			return unicode.ToLower(r)
		case 0x200c <= r && r <= 0x200f, 0x202a <= r && r <= 0x202e, 0x206a <= r && r <= 0x206f, r == 0xfeff:
			return -1 // git's utf8.c, from Apple's HFS+ volume format
		}
		least := r
		for other := unicode.SimpleFold(r); other != r; other = unicode.SimpleFold(other) {
			least = min(least, other)
		}
		return unicode.ToLower(least)
	}, strings.TrimRight(name, ". "))
}

const maxBranch = 200 // a loose ref is a file, and its lock a longer one

var branchPattern = regexp.MustCompile(`^[A-Za-z0-9._/@+=,#%-]+$`)

// CheckBranch accepts the names of git check-ref-format --branch that every file system keeps: components begin and end without
// a dot and are no Windows devices, and characters are visible ASCII.
func CheckBranch(branch string) error {
	switch {
	case branch == "":
		return errors.New("the branch is empty")
	case len(branch) > maxBranch:
		return fmt.Errorf("the branch is longer than %d bytes", maxBranch)
	case !branchPattern.MatchString(branch):
		return fmt.Errorf("branch %q has a character other than A-Z a-z 0-9 . _ / @ + = , # %% -", branch)
	case branch[0] == '-':
		return fmt.Errorf("branch %q begins with a dash", branch)
	case strings.Contains(branch, ".."):
		return fmt.Errorf("branch %q has two dots in a row", branch)
	case branch == "@" || strings.EqualFold(branch, "HEAD"):
		return fmt.Errorf("branch %q is git's name for the current branch; use another name", branch)
	case strings.HasPrefix(strings.ToLower(branch), "refs/"):
		return fmt.Errorf("branch %q: give it without refs/heads/", branch)
	case folder.IsCommit(strings.ToLower(branch)):
		return fmt.Errorf("branch %q looks like an object id; use another name", branch)
	}
	for component := range strings.SplitSeq(branch, "/") {
		switch {
		case component == "":
			return fmt.Errorf("branch %q begins or ends with a slash, or has two in a row", branch)
		case component[0] == '.' || component[len(component)-1] == '.':
			return fmt.Errorf("branch %q: a part between slashes begins or ends with a dot", branch)
		case strings.HasSuffix(strings.ToLower(component), ".lock"):
			return fmt.Errorf("branch %q: a part between slashes ends with .lock", branch)
		case isDevice(component):
			return fmt.Errorf("branch %q: %q is a device name on Windows", branch, component)
		}
	}
	return nil
}
