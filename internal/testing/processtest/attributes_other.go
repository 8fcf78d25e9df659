//go:build !unix

package processtest

import (
	"errors"
	"os"
	"syscall"
)

// attributes are none: a killed test binary leaves its servers behind.
func attributes() *syscall.SysProcAttr { return nil }

func kill(process *os.Process) { _ = process.Kill() }

func runAs(*syscall.SysProcAttr, string) error {
	return errors.New("a process runs as another user only on Unix")
}
