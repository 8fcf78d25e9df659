//go:build unix && !linux

package processtest

import "syscall"

// attributes group the process with its children. A killed test binary leaves them behind.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
