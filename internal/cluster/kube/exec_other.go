//go:build !unix

package kube

import "os/exec"

// killWhole does nothing: os/exec kills only the command itself.
func killWhole(*exec.Cmd) {}
