package processtest

import "syscall"

// attributes make the kernel end the process with the test binary, even when
// that is killed or its timeout ends it, and give it a group of its own, with
// which its children end.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
