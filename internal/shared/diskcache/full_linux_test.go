package diskcache_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
)

// smallDisk mounts a file system of a size in bytes, as root.
func smallDisk(t *testing.T, size int) string {
	t.Helper()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
		t.Skipf("only root mounts a small disk: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, syscall.MNT_DETACH) })
	return disk
}

func TestAFullDiskLeavesNoHalfEntry(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(smallDisk(t, 1<<20), "cache")
	f := diskcache.New(folder, diskcache.DefaultMaxSize)
	third := strings.Repeat("x", 300<<10)
	for i := range 10 { // each takes a third of the disk; former entries make room
		write(t, f, diskcache.Artifacts, fmt.Sprint(i), third)
		if got := read(t, f, diskcache.Artifacts, fmt.Sprint(i)); got != third {
			t.Fatalf("entry %d has %d bytes", i, len(got))
		}
	}
	calls := 0
	_, err := f.Write(diskcache.Artifacts, "large", func(to io.Writer) error {
		calls++
		for range 64 {
			if _, err := io.WriteString(to, strings.Repeat("y", 32<<10)); err != nil {
				return err
			}
		}
		return nil
	})
	if !errors.Is(err, syscall.ENOSPC) || !strings.Contains(err.Error(), "free space there") || !strings.Contains(err.Error(), folder) ||
		calls != 2 {
		t.Errorf("after %d calls the error is %v", calls, err)
	}
	if got := read(t, f, diskcache.Artifacts, "large"); got != "(none)" {
		t.Errorf("%d bytes are read of an entry that was never complete", len(got))
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if strings.HasPrefix(file.Name(), ".") {
			t.Errorf("%s is left", file.Name())
		}
	}
	write(t, f, diskcache.Artifacts, "small", "z")
}
