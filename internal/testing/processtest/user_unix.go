//go:build unix

package processtest

import (
	"os/user"
	"strconv"
	"syscall"
)

func runAs(attributes *syscall.SysProcAttr, name string) error {
	uid, gid, err := IDs(name)
	if err == nil {
		attributes.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // they are of 32 bits
	}
	return err
}

// IDs returns the ids of a system user and its group.
func IDs(name string) (uid, gid int, err error) {
	found, err := user.Lookup(name)
	if err != nil {
		return 0, 0, err
	}
	if uid, err = strconv.Atoi(found.Uid); err == nil {
		gid, err = strconv.Atoi(found.Gid)
	}
	return uid, gid, err
}
