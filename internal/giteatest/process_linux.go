package giteatest

import "syscall"

// dieWithParent makes the kernel end the server with the test binary, even when
// that is killed or its timeout ends it.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
