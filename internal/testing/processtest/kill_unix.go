//go:build unix

package processtest

import (
	"os"
	"syscall"
)

// kill ends the process and its children.
func kill(process *os.Process) { _ = syscall.Kill(-process.Pid, syscall.SIGKILL) }
