//go:build unix

package diskcache_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
)

func TestAFolderThatOthersCanWriteToIsRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		change func(folder string) error
		want   string // part of the error; "" if the folder is used
	}{
		"of this user alone": {func(folder string) error { return os.Chmod(folder, 0o700) }, ""},
		"that others read":   {func(folder string) error { return os.Chmod(folder, 0o755) }, ""},
		"by a link":          {moveAndLink, ""},
		"of the group":       {func(folder string) error { return os.Chmod(folder, 0o770) }, "can be written by other users (mode 0770)"},
		"of all":             {func(folder string) error { return os.Chmod(folder, 0o777|os.ModeSticky) }, "can be written by other users (mode 0777)"},
		"of somebody else":   {chown, "belongs to user 12345"},
		"that is a file":     {replaceByFile, "cannot be opened"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := newPath(t)
			path := write(t, diskcache.New(folder, diskcache.DefaultMaxSize), diskcache.Objects, "a", "content")
			if err := test.change(folder); os.IsPermission(err) {
				t.Skip(err) // only root can give a file away
			} else if err != nil {
				t.Fatal(err)
			}
			f := diskcache.New(folder, diskcache.DefaultMaxSize)
			content, err := f.Read(diskcache.Objects, "a")
			if test.want == "" {
				if err != nil || string(content) != "content" || f.Check() != nil {
					t.Errorf("read is %q, %v, %v", content, err, f.Check())
				}
				return
			}
			_, _, found := f.Find(diskcache.Objects, "a")
			_, wrote := f.Write(diskcache.Objects, "b", nil)
			for what, err := range map[string]error{"read": err, "find": found, "write": wrote} {
				if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), folder) ||
					!strings.Contains(err.Error(), "FLOTILLA_CACHE_DIR") {
					t.Errorf("%s: error %v, want %q", what, err, test.want)
				}
			}
			if err := f.Check(); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("check: error %v", err)
			}
			if _, err := diskcache.Open(path); err == nil {
				t.Error("an entry is opened")
			}
		})
	}
}

func chown(path string) error { return os.Chown(path, 12345, 12345) }

func moveAndLink(path string) error {
	if err := os.Rename(path, path+"-moved"); err != nil {
		return err
	}
	return os.Symlink(path+"-moved", path)
}

func replaceByFile(path string) error {
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

// Links, pipes and other files planted under the name of an entry are neither read nor followed, and do not block the reader.
func TestPlantedLinksAndPipesAreNotFollowed(t *testing.T) {
	t.Parallel()
	for name, plant := range map[string]func(entry, outside string) error{
		"a symbolic link":         func(entry, outside string) error { return os.Symlink(outside, entry) },
		"a link within the cache": func(entry, _ string) error { return os.Symlink(filepath.Base(entry)+"-copy", entry) },
		"a link to nothing":       func(entry, _ string) error { return os.Symlink("/nowhere", entry) },
		"a hard link":             func(entry, outside string) error { return os.Link(outside, entry) },
		"a pipe":                  func(entry, _ string) error { return syscall.Mkfifo(entry, 0o600) },
		"a file of somebody else": func(entry, outside string) error { return copied(outside, entry, chown) },
		"a file for all": func(entry, outside string) error {
			return copied(outside, entry, func(p string) error { return os.Chmod(p, 0o666) })
		},
		"an empty folder": func(entry, _ string) error { return os.Mkdir(entry, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder, outside := newPath(t), filepath.Join(t.TempDir(), "outside")
			f := diskcache.New(folder, diskcache.DefaultMaxSize)
			entry := write(t, f, diskcache.Objects, "a", "content")
			// Each is a valid entry, as an attacker who knows the format would write it.
			for _, to := range []string{outside, entry + "-copy"} {
				if err := copied(entry, to, nil); err != nil {
					t.Fatal(err)
				}
			}
			before, err := os.ReadFile(outside)
			if err != nil {
				t.Fatal(err)
			}
			for _, use := range []func(){
				func() {
					if got := read(t, f, diskcache.Objects, "a"); got != "(none)" {
						t.Errorf("read is %q", got)
					}
				},
				func() {
					if _, has, err := f.Find(diskcache.Objects, "a"); has || err != nil {
						t.Errorf("it is found: %v", err)
					}
				},
				func() {
					if opened, err := diskcache.Open(entry); err == nil {
						_ = opened.Close()
						t.Error("it is opened")
					}
				},
				func() {
					if name == "an empty folder" {
						return // no file replaces a folder
					}
					write(t, f, diskcache.Objects, "a", "own")
					if got := read(t, f, diskcache.Objects, "a"); got != "own" {
						t.Errorf("after it was written, read is %q", got)
					}
				},
			} {
				_ = os.Remove(entry)
				if err := plant(entry, outside); os.IsPermission(err) {
					t.Skip(err)
				} else if err != nil {
					t.Fatal(err)
				}
				use()
			}
			if after, err := os.ReadFile(outside); err != nil || string(after) != string(before) {
				t.Errorf("the file outside is %q, %v", after, err)
			}
		})
	}
}

func copied(from, to string, change func(string) error) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	_ = os.Remove(to)
	if err := os.WriteFile(to, content, 0o600); err != nil || change == nil {
		return err
	}
	return change(to)
}

// A sweep removes a planted link, but not its target.
func TestASweepRemovesNothingOutside(t *testing.T) {
	t.Parallel()
	folder, outside := newPath(t), filepath.Join(t.TempDir(), "outside")
	path := write(t, diskcache.New(folder, diskcache.DefaultMaxSize), diskcache.Objects, "a", "content")
	if err := copied(path, outside, nil); err != nil {
		t.Fatal(err)
	}
	age(t, outside, 31*24*time.Hour)
	_ = os.Remove(path)
	if err := os.Link(outside, path); err != nil {
		t.Fatal(err)
	}
	read(t, diskcache.New(folder, diskcache.DefaultMaxSize), diskcache.Artifacts, "b")
	if exists(path) || !exists(outside) {
		t.Errorf("the link is there: %t, and its file: %t", exists(path), exists(outside))
	}
}
