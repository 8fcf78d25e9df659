//go:build unix

package kube

import (
	"os/exec"
	"syscall"
)

// killWhole makes the end of the context kill also the processes that a command has started, since many are scripts.
func killWhole(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
