package diskcache_test

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
)

// newPath returns the path of a folder that does not exist yet.
func newPath(t testing.TB) string { return filepath.Join(t.TempDir(), "cache") }

func write(t testing.TB, f *diskcache.Folder, kind diskcache.Kind, key, content string) string {
	t.Helper()
	path, err := f.Write(kind, key, func(to io.Writer) error {
		_, err := io.WriteString(to, content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t testing.TB, f *diskcache.Folder, kind diskcache.Kind, key string) string {
	t.Helper()
	content, err := f.Read(kind, key)
	if err != nil {
		t.Fatal(err)
	}
	if content == nil {
		return "(none)"
	}
	return string(content)
}

// age sets the time of an entry's last use.
func age(t testing.TB, path string, since time.Duration) {
	t.Helper()
	used := time.Now().Add(-since)
	if err := os.Chtimes(path, used, used); err != nil {
		t.Fatal(err)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

func TestAnEntryIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	folder := newPath(t)
	f := diskcache.New(folder, diskcache.DefaultMaxSize)
	if got := read(t, f, diskcache.Objects, "a"); got != "(none)" {
		t.Errorf("in a folder that does not exist there is %q", got)
	}
	path := write(t, f, diskcache.Objects, "a", "one")
	write(t, f, diskcache.Artifacts, "a", "two")
	write(t, f, diskcache.Objects, "empty", "")
	if got := read(t, diskcache.New(folder, diskcache.DefaultMaxSize), diskcache.Objects, "a"); got != "one" {
		t.Errorf("read is %q", got)
	}
	if got := read(t, f, diskcache.Objects, "empty"); got != "" {
		t.Errorf("of no content, read is %q", got)
	}
	found, has, err := f.Find(diskcache.Objects, "a")
	if err != nil || !has || found != path || !filepath.IsAbs(path) {
		t.Errorf("found is %q, %t, %v, want %q", found, has, err, path)
	}
	open, err := diskcache.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	write(t, f, diskcache.Objects, "a", "three")
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if content, err := io.ReadAll(open); err != nil || string(content) != "one" {
		t.Errorf("an open entry is %q, %v, after it was replaced and removed", content, err)
	}
	_ = open.Close()
	if _, err := diskcache.Open(path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was removed is opened: %v", err)
	}
	write(t, f, diskcache.Objects, "a", "four")
	if got := read(t, f, diskcache.Objects, "a"); got != "four" {
		t.Errorf("after the folder was removed, read is %q", got)
	}
	none := diskcache.New("", diskcache.DefaultMaxSize)
	if _, err := none.Read(diskcache.Objects, "a"); err == nil || !strings.Contains(err.Error(), "FLOTILLA_CACHE_DIR") {
		t.Errorf("without a folder: %v", err)
	}
}

// A flipped bit, truncation, appended bytes and content under another name are detected.
func TestADamagedEntryIsIgnored(t *testing.T) {
	t.Parallel()
	f := diskcache.New(newPath(t), diskcache.DefaultMaxSize)
	path := write(t, f, diskcache.Objects, "a", "content")
	other := write(t, f, diskcache.Objects, "b", "other")
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	damaged := map[string][]byte{"longer": append([]byte{}, append(whole, 'x')...), "zeros": make([]byte, len(whole)), "another entry": nil}
	if damaged["another entry"], err = os.ReadFile(other); err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		flipped := append([]byte{}, whole...)
		flipped[i] ^= 1
		damaged[fmt.Sprintf("bit in byte %d", i)] = flipped
		damaged[fmt.Sprintf("the first %d bytes", i)] = whole[:i]
	}
	for name, content := range damaged {
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if got := read(t, f, diskcache.Objects, "a"); got != "(none)" || exists(path) {
			t.Errorf("%s: read is %q, and the entry is still there: %t", name, got, exists(path))
		}
	}
}

func TestAFailedWriteLeavesNothing(t *testing.T) {
	t.Parallel()
	folder := newPath(t)
	f := diskcache.New(folder, diskcache.DefaultMaxSize)
	write(t, f, diskcache.Objects, "a", "before")
	_, err := f.Write(diskcache.Objects, "a", func(to io.Writer) error {
		_, _ = io.WriteString(to, strings.Repeat("x", 1<<20))
		return errors.New("cannot go on")
	})
	if err == nil || !strings.Contains(err.Error(), "cannot go on") || !strings.Contains(err.Error(), folder) {
		t.Errorf("error %v", err)
	}
	if got := read(t, f, diskcache.Objects, "a"); got != "before" {
		t.Errorf("read is %q", got)
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != 1 {
		t.Errorf("left are %v, %v", files, err)
	}
}

func TestEntriesAreRemovedThirtyDaysAfterTheirLastUse(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	folder := newPath(t)
	f := diskcache.New(folder, diskcache.DefaultMaxSize)
	old, recent := write(t, f, diskcache.Artifacts, "old", "x"), write(t, f, diskcache.Objects, "recent", "x")
	// Files of others stay, and so does a temporary file that a process may be writing.
	abandoned, current := filepath.Join(folder, ".new-"+rand.Text()), filepath.Join(folder, ".new-"+rand.Text())
	left := map[string]bool{old: false, recent: true, abandoned: false, current: true}
	for _, name := range []string{"notes.txt", ".new-notes.txt", "backup-" + strings.Repeat("0", 64)} {
		left[filepath.Join(folder, name)] = true
	}
	for path := range left {
		if exists(path) {
			continue
		}
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		age(t, path, 400*day)
	}
	foreign := filepath.Join(folder, ".new-"+rand.Text())
	if err := os.Mkdir(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	left[foreign] = true
	for path, since := range map[string]time.Duration{
		old: 31 * day, recent: 29 * day, abandoned: 2 * time.Hour, current: 0, foreign: 400 * day,
	} {
		age(t, path, since)
	}
	again := diskcache.New(folder, diskcache.DefaultMaxSize)
	if got := read(t, again, diskcache.Objects, "recent"); got != "x" {
		t.Errorf("what was used 29 days ago is %q", got)
	}
	for path, want := range left {
		if exists(path) != want {
			t.Errorf("%s is there: %t, want %t", path, exists(path), want)
		}
	}
	// The use gives it another 30 days.
	if info, err := os.Stat(recent); err != nil || time.Since(info.ModTime()) > day {
		t.Errorf("the last use is not known: %v, %v", info.ModTime(), err)
	}
}

func TestLeastRecentlyUsedEntriesAreRemovedAboveTheLimit(t *testing.T) {
	t.Parallel()
	folder := newPath(t)
	f := diskcache.New(folder, 1<<20)
	content := strings.Repeat("x", 100<<10)
	paths := map[int]string{}
	for i := range 9 {
		paths[i] = write(t, f, diskcache.Artifacts, fmt.Sprint(i), content)
		age(t, paths[i], time.Duration(24-i)*time.Hour)
	}
	read(t, f, diskcache.Artifacts, "0")
	for i := range 3 {
		write(t, f, diskcache.Objects, fmt.Sprint(i), content)
	}
	var size int64
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 1<<20 || size < 900<<10 {
		t.Errorf("the folder has %d bytes", size)
	}
	for i, want := range []bool{true, false, false, false, true} {
		if exists(paths[i]) != want {
			t.Errorf("entry %d is there: %t, want %t", i, exists(paths[i]), want)
		}
	}
	// An entry in use stays, even if it is larger than the limit.
	large := write(t, f, diskcache.Artifacts, "large", strings.Repeat("x", 2<<20))
	if !exists(large) {
		t.Error("what was just written was removed")
	}
}
