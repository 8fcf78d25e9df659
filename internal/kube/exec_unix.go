//go:build unix

package kube

import (
	"os/exec"
	"syscall"
)

// killWhole lets the end of the context kill what a command has started, too: many are scripts.
func killWhole(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}
