package processtest

import "syscall"

// attributes put the process and its children in a group, and make the kernel end it with the test binary, even if that is
// killed.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
