//go:build unix

package processtest

import (
	"os"
	"syscall"
)

// kill ends the process and its children: Git hosts and agents have many.
func kill(process *os.Process) { _ = syscall.Kill(-process.Pid, syscall.SIGKILL) }
