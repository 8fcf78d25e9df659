//go:build unix && !linux

package processtest

import "syscall"

// attributes put the process and its children in a group. If the test binary is killed, its servers stay behind.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
