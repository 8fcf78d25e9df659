//go:build unix && !linux

package processtest

import "syscall"

// attributes give the process a group of its own, with which its children end.
// The kernel does not end it with the test binary: when that is killed, its
// servers stay behind.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
