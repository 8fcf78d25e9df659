//go:build unix

package diskcache

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// othersCanWrite describes why another user can change a file; "" if none can.
func othersCanWrite(info fs.FileInfo) string {
	if has, ok := info.Sys().(*syscall.Stat_t); ok && int(has.Uid) != os.Geteuid() {
		return fmt.Sprintf("belongs to user %d, and this process runs as user %d", has.Uid, os.Geteuid())
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Sprintf("can be written by other users (mode %04o)", info.Mode().Perm())
	}
	return ""
}

// hasOtherNames reports whether a file has another hard link.
func hasOtherNames(info fs.FileInfo) bool {
	has, ok := info.Sys().(*syscall.Stat_t)
	return ok && has.Nlink > 1
}

func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
