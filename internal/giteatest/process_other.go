//go:build !linux

package giteatest

import "syscall"

// dieWithParent does nothing where the kernel does not offer it: there a killed
// test binary leaves its server behind.
func dieWithParent() *syscall.SysProcAttr { return nil }
