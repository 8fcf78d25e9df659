//go:build !unix

package diskcache

import (
	"errors"
	"io/fs"
	"syscall"
)

// othersCanWrite is "": Go does not read access control lists, and a user's folder for caches is private.
func othersCanWrite(fs.FileInfo) string { return "" }

func hasOtherNames(fs.FileInfo) bool { return false }

// Windows' ERROR_HANDLE_DISK_FULL and ERROR_DISK_FULL.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.Errno(39)) || errors.Is(err, syscall.Errno(112))
}
