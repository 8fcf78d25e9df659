package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// ownNetwork is set in the process that has a network namespace of its own.
const ownNetwork = "FLOTILLA_E2E_NETWORK"

// inOwnNetwork runs the tests, with all their processes, in a network namespace that has only loopback. Argo CD's controller
// listens on every address, and no flag turns that off. Without permission for a namespace, the tests run in the network of the
// machine.
func inOwnNetwork(run func() int) int {
	switch {
	case os.Getenv("FLOTILLA_E2E") == "":
		return run()
	case os.Getenv(ownNetwork) != "":
		if err := startLoopback(); err != nil {
			fmt.Fprintln(os.Stderr, "e2e: no loopback:", err)
			return 1
		}
		return run()
	}
	// The namespace has no internet: download the definitions first. A test reports a failed download.
	_, _ = kubetest.Definitions(context.Background())

	runtime.LockOSThread() // Pdeathsig: this thread must outlive the tests
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), ownNetwork+"=own")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Pdeathsig:   syscall.SIGKILL,
	}
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "e2e: Argo CD listens on every address, since there can be no network for the tests alone: %v\n", err)
		return run()
	}
	err := cmd.Wait()
	if exit := new(exec.ExitError); errors.As(err, &exit) {
		return exit.ExitCode()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "e2e:", err)
		return 1
	}
	return 0
}

// startLoopback starts the loopback interface of a new network namespace.
func startLoopback() error {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_DGRAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer func() { _ = syscall.Close(socket) }()
	request := struct { // struct ifreq
		name  [syscall.IFNAMSIZ]byte
		flags uint16
		_     [22]byte
	}{flags: syscall.IFF_UP}
	copy(request.name[:], "lo")
	if _, _, code := syscall.Syscall(syscall.SYS_IOCTL, uintptr(socket), syscall.SIOCSIFFLAGS, uintptr(unsafe.Pointer(&request))); code != 0 {
		return code
	}
	return nil
}
