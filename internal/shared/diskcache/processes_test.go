package diskcache_test

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// processVariable names the cache that a process of the test uses.
const processVariable = "DISKCACHE_TEST_PROCESS"

func TestMain(m *testing.M) {
	if value := os.Getenv(processVariable); value != "" {
		if err := useAtRandom(value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// contentOf returns the content of a key, the same in every process.
func contentOf(key int) string { return strings.Repeat(fmt.Sprintf("content %d\n", key), 2000+key*50) }

// useAtRandom reads, writes, ages and damages entries of a cache in a number of rounds.
func useAtRandom(value string) error {
	rounds, folder, _ := strings.Cut(value, ":")
	number, err := strconv.Atoi(rounds)
	if err != nil {
		return err
	}
	for range number {
		f := diskcache.New(folder, 1<<20) // each stands for a process
		for range 20 {
			if err := useOnce(f, rand.IntN(60)); err != nil {
				return err
			}
		}
	}
	return nil
}

func useOnce(f *diskcache.Folder, key int) error {
	want, name := contentOf(key), fmt.Sprint(key)
	content, err := f.Read(diskcache.Objects, name)
	if err != nil || content != nil && string(content) != want {
		return fmt.Errorf("read are %d bytes, %w", len(content), err)
	}
	path, has, err := f.Find(diskcache.Objects, name)
	if err != nil {
		return err
	}
	if !has {
		if path, err = f.Write(diskcache.Objects, name, func(to io.Writer) error {
			_, err := io.WriteString(to, want)
			return err
		}); err != nil {
			return err
		}
	}
	entry, err := diskcache.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // another process removed it
	}
	if err != nil {
		return err
	}
	defer func() { _ = entry.Close() }()
	switch rand.IntN(4) {
	case 0: // removed during a read
		_ = os.Remove(path)
	case 1: // replaced by truncated content
		damaged := filepath.Join(filepath.Dir(path), fmt.Sprint("damaged-", rand.Int64()))
		if os.WriteFile(damaged, []byte(want[:100]), 0o600) == nil {
			_ = os.Rename(damaged, path)
		}
	case 2: // last used long ago
		used := time.Now().Add(-time.Duration(rand.IntN(40*24)) * time.Hour)
		_ = os.Chtimes(path, used, used)
	}
	if got, err := io.ReadAll(entry); err != nil || string(got) != want {
		return fmt.Errorf("an open entry has %d bytes, %w", len(got), err)
	}
	return nil
}

// Processes with one cache only read whole content while others write, sweep, remove and damage entries.
func TestProcessesShareOneCache(t *testing.T) {
	t.Parallel()
	folder := newPath(t)
	rounds := acceptancetest.Count(10, 300)
	var all []*exec.Cmd
	for range acceptancetest.Count(3, 8) {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), fmt.Sprintf("%s=%d:%s", processVariable, rounds, folder))
		process.Stderr = &strings.Builder{}
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		all = append(all, process)
	}
	for _, process := range all {
		if err := process.Wait(); err != nil {
			t.Errorf("%v: %s", err, process.Stderr)
		}
	}
}

func TestAKilledWriterLeavesNothingThatIsRead(t *testing.T) {
	t.Parallel()
	folder := newPath(t)
	for range acceptancetest.Count(5, 200) {
		process := exec.CommandContext(t.Context(), os.Args[0])
		process.Env = append(os.Environ(), fmt.Sprintf("%s=1000:%s", processVariable, folder))
		if err := process.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(20+rand.IntN(50)) * time.Millisecond) // at any step of a write
		_ = process.Process.Kill()
		_ = process.Wait()
		f := diskcache.New(folder, diskcache.DefaultMaxSize)
		for key := range 60 {
			if got := read(t, f, diskcache.Objects, fmt.Sprint(key)); got != "(none)" && got != contentOf(key) {
				t.Errorf("of entry %d, %d bytes are read", key, len(got))
			}
		}
	}
}
