//go:build unix

package kube

import (
	"os/exec"
	"syscall"
)

// killWhole also kills processes that the command has started, because many commands are scripts.
func killWhole(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
