package git_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

func TestCheckPathRefusesPathsThatSystemsReadDifferently(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"", "dev", "a/b/c", "clusters/store-17", "A.b_c-d", "x.git", strings.Repeat("a", 255), "console", "com", "lpt10", "-"} {
		if err := git.CheckPath(path); err != nil {
			t.Errorf("CheckPath(%q) = %v", path, err)
		}
	}
	for _, path := range []string{
		"/", "/dev", "dev/", "a//b", ".", "..", "../a", "a/../b", "a/./b",
		".git", ".GIT", ".Git/hooks", "a/.git/config", "git~1", "GIT~1", ".git.", ".git ", ".git. ", ".git...", ".git:x", ".git::$INDEX_ALLOCATION", "git~1 ", "GIT~2", ".gi\u200ct", "\ufeff.git", "\u2060.git", "a/\u202e.git", ".gitmodules", ".flotilla", "a/.flotilla",
		"a.", "a./b", ".hidden", "a b", "a\\b", "a:b", "a*", "a?", "a\x00b", "a\nb", "ä", "a\u200cb", ".g\u200cit", "a\u2215b", "%2e%2e",
		"con", "CON", "nul.txt", "a/Aux/b", "prn.yaml", "com1", "COM9.log", "lpt0", "lpt9",
		strings.Repeat("a", 256), strings.Repeat("a/", 40) + "a", strings.Repeat(strings.Repeat("a", 200)+"/", 30) + "a",
	} {
		if err := git.CheckPath(path); err == nil {
			t.Errorf("CheckPath(%q) = nil", path)
		}
	}
}

// Git decides over random spellings of dangerous names, with its protection of NTFS and HFS+ switched on.
func TestGitAcceptsEveryCheckedPathAndBranch(t *testing.T) {
	t.Parallel()
	parts := []string{
		".git", ".GIT", "git~1", "git", "~1", ".", "..", "/", "\\", ":", " ", "-", "_", "a", "A", "con", "aux.x", "lock", ".lock", "@", "@{", "{",
		"\u200c", "\ufeff", "\u212a", "\x7f", "\t", "HEAD", "refs/", "heads", "~", "^", "*", "?", "[", "gitmodules", "::$DATA", "%2e", "0",
	}
	random := rand.New(rand.NewPCG(1, 2))
	paths, branches := map[string]bool{}, map[string]bool{}
	for range acceptancetest.Count(5_000, 200_000) {
		var text strings.Builder
		for range 1 + random.IntN(5) {
			text.WriteString(parts[random.IntN(len(parts))])
		}
		if git.CheckPath(text.String()) == nil {
			paths[text.String()] = true
		}
		if git.CheckBranch(text.String()) == nil && len(branches) < acceptancetest.Count(30, 500) {
			branches[text.String()] = true
		}
	}
	directory := t.TempDir()
	gittest.Run(t, directory, "git", "init", "--quiet", "--bare")
	// Each path has a tree of its own, because "a" and "a/b" exclude each other.
	blob := strings.TrimSpace(gittest.Run(t, directory, "git", "hash-object", "-w", "-t", "blob", os.DevNull))
	var index strings.Builder
	i := 0
	for path := range paths {
		i++
		fmt.Fprintf(&index, "100644 %s\t%d/%s\n", blob, i, path)
	}
	gittest.Feed(
		t,
		directory,
		[]byte(index.String()),
		"-c",
		"core.protectNTFS=true",
		"-c",
		"core.protectHFS=true",
		"update-index",
		"--add",
		"--index-info",
	)
	if got := strings.Count(gittest.Run(t, directory, "git", "ls-files", "-z"), "\x00"); got != len(paths) {
		t.Errorf("git has %d paths of %d", got, len(paths))
	}
	gittest.Run(t, directory, "git", "-c", "core.protectNTFS=true", "-c", "core.protectHFS=true", "write-tree")
	gittest.Run(t, directory, "git", "fsck", "--strict")
	for branch := range branches {
		if got := strings.TrimSpace(gittest.Run(t, directory, "git", "check-ref-format", "--branch", branch)); got != branch {
			t.Errorf("git reads branch %q as %q", branch, got)
		}
	}
	if len(paths) < 100 || len(branches) < 30 {
		t.Errorf("%d paths and %d branches say little", len(paths), len(branches))
	}
}

func TestCheckBranchRefusesMoreThanGit(t *testing.T) {
	t.Parallel()
	for _, branch := range []string{"main", "release/1.2", "user/feature-1_x", "a@b", "v1.0", "a+b=c", "issue#1", "heads/x"} {
		if err := git.CheckBranch(branch); err != nil {
			t.Errorf("CheckBranch(%q) = %v", branch, err)
		}
	}
	for _, branch := range []string{
		"", "-x", "a..b", ".a", "a/.b", "a.", "a./b", "a.lock", "a.lock/b", "a.LOCK", "/a", "a/", "a//b",
		"a b", "a~b", "a^b", "a:b", "a?b", "a*b", "a[b", "a\\b", "a@{b", "@", "HEAD", "head", "refs/heads/main", "REFS/x",
		"a\x00b", "a\x7fb", "a\nb", "ä", "aux", "a/con.x", "0123456789012345678901234567890123456789", strings.Repeat("a", 201),
	} {
		if err := git.CheckBranch(branch); err == nil {
			t.Errorf("CheckBranch(%q) = nil", branch)
		}
	}
}

func TestCheckURLAcceptsOnlyRepositories(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"https://git.example.com/o/r.git", "http://127.0.0.1:3000/o/r", "https://[::1]:8443/r", "HTTPS://git.example.com/r",
		"file:///srv/r.git", "file://localhost/srv/r.git", "/srv/r.git", "r.git", "./r", "../r", "~/r", "a b/r", "./a:b", "https://h/a%20b", "a/b://c",
		"ssh://git@h/r", "ssh://h:2222/o/r.git", "ssh://git@[::1]:22/~user/r", "git@h:o/r.git", "h:r", "git@[::1]:r", "user_1@h.example.com:/srv/r.git",
		"https://dev.azure.com/org/My%20Project/_git/repo", "https://org.visualstudio.com/DefaultCollection/p/_git/repo",
		"git@ssh.dev.azure.com:v3/org/My%20Project/repo", "ssh://git@ssh.dev.azure.com/v3/org/My%20Project/repo",
	} {
		if err := git.CheckURL(url); err != nil {
			t.Errorf("CheckURL(%q) = %v", url, err)
		}
	}
	for _, url := range []string{
		"", " https://h/r", "https://h/r\n", "https://h/r\x00", "https://h/\u2028", "https://h/\xff",
		"https://h", "https://h/", "https:///r", "https://h:0/r", "https://h:99999/r", "https://h:x/r", "https://h/a/../r", "https://h/a b", "https://h/a\\b",
		"https://h/r?x=y", "https://h/r?", "https://h/r#x", "https://h/r#", "https://h/%00", "https://h/%0a", "https://h/%zz", "https://h/%3fx",
		"ssh://h", "ssh://h/", "ssh://-oProxyCommand=x/r", "ssh://-x@h/r", "ssh://h/-r", "h:-r", "-h:r", "-x@h:r", "@h:r", "h:", "git@:r", "git@h h:r", "git@h:r\\x", "a b@h:r",
		"ssh://git@h/r'x", "h:r'x", "h:a/../b", "[::1:r", "[h]:r", "[::1]r:x", "c:\\r", "c:/r", "https:/h/r", "git@h:r?x", "git://h/r", "ftp://h/r", "ext::sh -c x", "ext::https://h/r", "file://h/r", "file://", "file:///",
		"javascript://x/y", "://", "1x://h/r", ":r", strings.Repeat("a", 3000),
		"https://gіt.example.com/a", "ssh://git@gіt.example.com/a", // whose second letter is Cyrillic
		"https://git.example.com/\u202ea", "https://git.example.com/\u0085a",
	} {
		if err := git.CheckURL(url); err == nil {
			t.Errorf("CheckURL(%q) = nil", url)
		}
	}
}

func TestCheckURLRefusesCredentialsAndDoesNotRepeatThem(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"https://canary@h/r", "https://u:canary@h/r", "https://:canary@h/r", "https://u:can%41ry-canary@h/r", "https://u:canary@h:x/r",
		"https://u:canary%zz@h/r", "ssh://u:canary@h/r", "ssh://:canary@h/r", "u:canary@h:r", "u:canary@h/r", "[u:canary@h]:r", "https://h/r?token=canary", "https://h/r#canary",
		"https://u:canary@h/\n", "ftp://u:canary@h/r", "http://u:canary@[::1/r", "https://u:canary@@h/r", "file://u:canary@h/r",
	} {
		err := git.CheckURL(url)
		if err == nil {
			t.Errorf("CheckURL(%q) = nil", url)
		} else if strings.Contains(err.Error(), "canary") {
			t.Errorf("CheckURL(%q) = %v", url, err)
		}
	}
}

func TestCheckURLNamesTheRemedy(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]string{
		"u:canary@h:r":      "ssh takes a key, not a password; a local path with a colon begins with ./",
		"a b:r":             "a local path with a colon begins with ./",
		"a b@h:r":           "a local path with a colon begins with ./",
		"https://u:p@h/r":   "remove them, and give them to the provider's git attribute",
		"https://h/r?x":     "remove it",
		"git.example.com/r": `write "https://git.example.com/r", "ssh://git@git.example.com/r", or, for a folder, "./git.example.com/r"`,
	} {
		if err := git.CheckURL(url); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("CheckURL(%q) = %v, want %q", url, err, want)
		}
	}
}

func FuzzCheckPath(f *testing.F) {
	for _, seed := range []string{"dev", "a/b", ".git", "a/../b", "con", "clusters/x", "a\\b", ".GIT ", "git~1", "a/.flotilla/b"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if git.CheckPath(path) != nil || path == "" {
			return
		}
		for _, segment := range strings.Split(path, "/") {
			lower := strings.ToLower(segment)
			base, _, _ := strings.Cut(lower, ".")
			switch {
			case segment == "", len(segment) > 255, strings.Trim(segment, ".") != segment, lower == ".git", lower == ".flotilla",
				base == "con", base == "nul", base == "aux", base == "prn", len(base) == 4 && (base[:3] == "com" || base[:3] == "lpt") && base[3] >= '0' && base[3] <= '9':
				t.Fatalf("CheckPath(%q) = nil", path)
			}
			for _, c := range []byte(segment) {
				if !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz0123456789._-", rune(strings.ToLower(string(c))[0])) || c >= 0x80 {
					t.Fatalf("CheckPath(%q) = nil", path)
				}
			}
		}
	})
}

func FuzzCheckBranch(f *testing.F) {
	for _, seed := range []string{"main", "a/b", "-x", "a..b", "a.lock", "@", "HEAD", "refs/heads/x", "a@{1}", "aux"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, branch string) {
		if git.CheckBranch(branch) != nil {
			return
		}
		// The rules of `git check-ref-format --branch`, without a process for each.
		if branch == "" || branch[0] == '-' || branch[0] == '/' || strings.HasSuffix(branch, "/") || strings.HasSuffix(branch, ".") ||
			strings.Contains(branch, "..") || strings.Contains(branch, "//") || strings.Contains(branch, "@{") || strings.Contains(branch, "/.") ||
			strings.HasPrefix(branch, ".") || strings.Contains(branch+"/", ".lock/") || strings.ContainsAny(branch, " ~^:?*[\\") ||
			branch == "@" || branch == "HEAD" || strings.HasPrefix(branch, "refs/") {
			t.Fatalf("CheckBranch(%q) = nil", branch)
		}
		for _, c := range []byte(branch) {
			if c <= ' ' || c >= 0x7f {
				t.Fatalf("CheckBranch(%q) = nil", branch)
			}
		}
	})
}

func FuzzCheckURL(f *testing.F) {
	for _, seed := range []string{"https://h/r", "https://u:p@h/r", "file:///r", "r", "ssh://h/r", "ssh://git@h:22/r", "h:r", "git@[::1]:r", "\\://", "https://h/%00", "https://[::1]/r"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, url string) {
		if git.CheckURL(url) != nil {
			return
		}
		scheme, rest, ok := strings.Cut(url, "://")
		if !ok {
			return
		}
		if strings.ContainsAny(scheme, "/\\") {
			return // a local path, made absolute before git sees it
		}
		if head, _, colon := strings.Cut(scheme, ":"); colon && head != "" {
			return // host:path://
		}
		host, _, _ := strings.Cut(rest, "/")
		switch strings.ToLower(scheme) {
		case "http", "https", "file":
		case "ssh":
			user, after, ok := strings.Cut(host, "@")
			if ok && strings.Contains(user, ":") {
				t.Fatalf("CheckURL(%q) = nil", url)
			}
			if ok {
				host = after
			}
		default:
			t.Fatalf("CheckURL(%q) = nil", url)
		}
		if strings.Contains(host, "@") || strings.ContainsAny(rest, "?#\n\x00") {
			t.Fatalf("CheckURL(%q) = nil", url)
		}
	})
}
