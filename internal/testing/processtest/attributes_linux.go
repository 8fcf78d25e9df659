package processtest

import "syscall"

// attributes group the process with its children, and make the kernel end it with the test binary.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
