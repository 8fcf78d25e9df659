//go:build unix

package provider_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// canaryChart returns a fleet whose chart renders a ConfigMap named canary.
func canaryChart(t *testing.T) (charts *chartServer, fleet map[string]any) {
	t.Helper()
	charts = newChartServer(t)
	pin := charts.publish(t, "1.2.1", map[string]string{"templates/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: canary}\n"})
	return charts, fleetWithPin(t, folder.Manifests{Storage: "helm", Repo: charts.url, Chart: "till", Version: "1.2.1"}, pin)
}

// entriesOf returns the paths of a kind's entries.
func entriesOf(t *testing.T, cache, kind string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(cache, kind+"-*"))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// removeCachedObjects removes the rendered objects, so that a plan reads the artifact again.
func removeCachedObjects(t *testing.T, cache string) {
	t.Helper()
	for _, path := range entriesOf(t, cache, "objects") {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACacheWritableByOthersIsAnErrorOfThePlan(t *testing.T) {
	cache := useNewCache(t)
	_, fleet := canaryChart(t)
	if objects, _, message := readFinalObjects(t, fleet); len(objects) != 1 {
		t.Fatalf("the objects are %v; diagnostics: %s", objects, message)
	}
	for name, change := range map[string]struct {
		path string
		make func(path string) error
		undo func(path string) error
		want string
	}{
		"writable by the group": {cache, func(path string) error { return os.Chmod(path, 0o775) }, func(path string) error { return os.Chmod(path, 0o700) }, "can be written by other users (mode 0775)"},
		"of another user":       {cache, func(path string) error { return os.Chown(path, 12345, -1) }, func(path string) error { return os.Chown(path, os.Geteuid(), -1) }, "belongs to user 12345"},
	} {
		if err := change.make(change.path); os.IsPermission(err) {
			continue // only root can change the owner
		} else if err != nil {
			t.Fatal(err)
		}
		removeCachedObjects(t, cache)
		message := planMessages(t, fleet)
		for _, want := range []string{"Manifests cannot be rendered", change.want, cache, "remove the folder", "FLOTILLA_CACHE_DIR", "cache.path"} {
			if !strings.Contains(message, want) {
				t.Errorf("%s: the plan says %s, want %q", name, message, want)
			}
		}
		named := providertest.Configuration{Provider: map[string]any{"cache": map[string]any{"path": cache}}}
		_, diags := providertest.New(startProvider).
			ReadData(t.Context(), named, "flotilla_manifests", map[string]any{"fleet": fleetOf(fleet)})
		if message := fmt.Sprint(diags); change.path == cache &&
			(!strings.Contains(message, "Invalid cache") || !strings.Contains(message, change.want)) {
			t.Errorf("%s: the provider says %s", name, message)
		}
		if err := change.undo(change.path); err != nil {
			t.Fatal(err)
		}
	}
	if objects, _, message := readFinalObjects(t, fleet); len(objects) != 1 {
		t.Errorf("afterwards the objects are %v; diagnostics: %s", objects, message)
	}
}

// A plan fetches and renders again, and follows no links.
func TestATamperedCacheEntryIsFetchedAgain(t *testing.T) {
	for name, plant := range map[string]func(entry, outside string) error{
		"damaged": func(entry, _ string) error {
			return overwriteFile(entry, func(text []byte) []byte { text[len(text)/2] ^= 1; return text })
		},
		"truncated": func(entry, _ string) error {
			return overwriteFile(entry, func(text []byte) []byte { return text[:len(text)/2] })
		},
		"empty": func(entry, _ string) error { return overwriteFile(entry, func([]byte) []byte { return nil }) },
		"a symbolic link": func(entry, outside string) error {
			return replaceFile(entry, func() error { return os.Symlink(outside, entry) })
		},
		"a hard link": func(entry, outside string) error {
			return replaceFile(entry, func() error { return os.Link(outside, entry) })
		},
		"a pipe": func(entry, _ string) error {
			return replaceFile(entry, func() error { return syscall.Mkfifo(entry, 0o600) })
		},
		"removed":            func(entry, _ string) error { return os.Remove(entry) },
		"of another user":    func(entry, _ string) error { return os.Chown(entry, 12345, -1) },
		"writable by others": func(entry, _ string) error { return os.Chmod(entry, 0o666) },
	} {
		for _, kind := range []string{"artifacts", "objects"} {
			t.Run(kind+" "+name, func(t *testing.T) {
				cache := useNewCache(t)
				charts, fleet := canaryChart(t)
				readFinalObjects(t, fleet)
				entries := entriesOf(t, cache, kind)
				if len(entries) != 1 {
					t.Fatalf("the entries are %v", entries)
				}
				// A forger would prepare a valid entry with other content.
				outside := filepath.Join(t.TempDir(), "outside")
				text, err := os.ReadFile(entries[0])
				if err == nil {
					err = os.WriteFile(outside, text, 0o600)
				}
				if err == nil {
					err = plant(entries[0], outside)
				}
				if os.IsPermission(err) {
					t.Skip(err)
				}
				if err != nil {
					t.Fatal(err)
				}
				if kind == "artifacts" {
					removeCachedObjects(t, cache)
				} else if err := os.Remove(entriesOf(t, cache, "artifacts")[0]); err != nil {
					t.Fatal(err)
				}
				objects, _, message := readFinalObjects(t, fleet)
				if len(objects) != 1 || !strings.Contains(fmt.Sprint(objects), "canary") || charts.fetched != 2 {
					t.Errorf("after %d fetches the objects are %v; diagnostics: %s", charts.fetched, objects, message)
				}
				if info, err := os.Lstat(entries[0]); err != nil || !info.Mode().IsRegular() || info.Mode().Perm() != 0o600 {
					t.Errorf("the entry is %v, %v", info, err)
				}
				if after, err := os.ReadFile(outside); err != nil || string(after) != string(text) {
					t.Errorf("the file outside was changed: %v", err)
				}
			})
		}
	}
}

func overwriteFile(path string, change func([]byte) []byte) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return os.WriteFile(path, change(text), 0o600)
}

func replaceFile(path string, create func() error) error {
	if err := os.Remove(path); err != nil {
		return err
	}
	return create()
}

// Entries expire after 30 days without use.
func TestACacheIsForOneUserAndForThirtyDays(t *testing.T) {
	cache := useNewCache(t)
	charts, fleet := canaryChart(t)
	readFinalObjects(t, fleet)
	err := filepath.WalkDir(cache, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("others may use %s: %s", path, info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"artifacts", "objects"} {
		used := time.Now().Add(-31 * 24 * time.Hour)
		if err := os.Chtimes(entriesOf(t, cache, kind)[0], used, used); err != nil {
			t.Fatal(err)
		}
	}
	if readFinalObjects(t, fleet); charts.fetched != 2 {
		t.Errorf("an expired entry was used: the chart was fetched %d times", charts.fetched)
	}
}

// The environment is the default.
func TestTheProviderNamesItsCache(t *testing.T) {
	byEnvironment := useNewCache(t)
	charts, fleet := canaryChart(t)
	read := func(cache map[string]any) string {
		configuration := providertest.Configuration{Provider: map[string]any{"cache": cache}}
		read, diags := providertest.New(startProvider).
			ReadData(t.Context(), configuration, "flotilla_manifests", map[string]any{"fleet": fleetOf(fleet)})
		return fmt.Sprint(read["objects"], diags)
	}
	named := filepath.Join(t.TempDir(), "a", "cache")
	if got := read(map[string]any{"path": named, "max_mib": 512}); !strings.Contains(got, "canary") ||
		len(entriesOf(t, named, "artifacts")) != 1 ||
		len(entriesOf(t, byEnvironment, "*")) != 0 {
		t.Errorf("with a path, got %s", got)
	}
	if got := read(map[string]any{"max_mib": 256}); !strings.Contains(got, "canary") || len(entriesOf(t, byEnvironment, "artifacts")) != 1 ||
		charts.fetched != 2 {
		t.Errorf("without a path, got %s", got)
	}
	if got := read(map[string]any{"path": named, "max_mib": 1}); !strings.Contains(got, "must be a whole number from 256") {
		t.Errorf("with a limit of 1 MiB, got %s", got)
	}
	if got := read(map[string]any{"folder": named}); !strings.Contains(got, "Invalid cache") || !strings.Contains(got, "folder") {
		t.Errorf("with a misspelt attribute, got %s", got)
	}
	if got := read(map[string]any{"path": "/proc/nowhere/cache"}); !strings.Contains(got, "cannot be created") ||
		!strings.Contains(got, "FLOTILLA_CACHE_DIR") {
		t.Errorf("with a folder that cannot be created, got %s", got)
	}
}
