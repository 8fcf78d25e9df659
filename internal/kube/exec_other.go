//go:build !unix

package kube

import "os/exec"

// killWhole leaves it at the command itself, which is what os/exec kills.
func killWhole(*exec.Cmd) {}
