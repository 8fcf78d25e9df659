// Package processtest runs the servers of tests, each in a group of processes that ends with the test binary, with a log for
// failing tests. Each test binary starts its own servers: sharing them would save a sixtieth of `make test`.
package processtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ErrPortTaken means that another process took one of [FreePorts].
var ErrPortTaken = errors.New("another process took the port")

// Command is a server to start.
type Command struct {
	// Name is for errors.
	Name string

	Binary string
	Args   []string

	// Folder is the working folder. The output goes to <Name>.log there.
	Folder string

	// Environment defaults to the test's.
	Environment []string

	// User is a system user to run as, with its own group, if not "". That needs root on Unix.
	User string
}

// Process is a started server.
type Process struct {
	name    string
	logFile string
	cmd     *exec.Cmd
	exited  chan struct{} // closed at the end
}

// Start starts a server, which ends with ctx.
func Start(ctx context.Context, command Command) (*Process, error) {
	p := &Process{
		name:    command.Name,
		logFile: filepath.Join(command.Folder, command.Name+".log"),
		exited:  make(chan struct{}),
	}
	output, err := os.Create(p.logFile)
	if err != nil {
		return nil, err
	}
	defer func() { _ = output.Close() }()

	p.cmd = exec.CommandContext(ctx, command.Binary, command.Args...)
	p.cmd.Dir = command.Folder
	p.cmd.Env = command.Environment
	p.cmd.Stdout = output
	p.cmd.Stderr = output
	p.cmd.SysProcAttr = attributes()
	if command.User != "" {
		if err := runAs(p.cmd.SysProcAttr, command.User); err != nil {
			return nil, fmt.Errorf("%s: %w", command.Name, err)
		}
	}
	p.cmd.Cancel = func() error { kill(p.cmd.Process); return nil }

	started := make(chan error)
	go func() {
		// Linux ties the parent-death signal to the thread that started the child, which has to live as long.
		runtime.LockOSThread()
		defer close(p.exited)
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // it is always killed
		}
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("%s: %w", command.Name, err)
	}
	return p, nil
}

// Stop kills the server and its children, if it runs. Process may be nil.
func (p *Process) Stop() {
	if p == nil {
		return
	}
	select {
	case <-p.exited:
	default:
		kill(p.cmd.Process)
		<-p.exited
	}
}

// Exited returns a channel that is closed at the end.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Log returns the end of the server's output.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-16<<10):])
}

// Ready polls until the server answers. Its error has the server's output.
func (p *Process) Ready(ctx context.Context, timeout time.Duration, answers func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for {
		err := answers(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-p.exited:
			log := p.Log()
			if strings.Contains(log, "address already in use") {
				return ErrPortTaken
			}
			return fmt.Errorf("%s ended before it was ready; its output:\n%s", p.name, log)
		case <-ctx.Done():
			return fmt.Errorf("%s was not ready after %s: %w; its output:\n%s", p.name, timeout, err, p.Log())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// RemoveFolder removes a folder into which stopped servers may still write for a moment.
func RemoveFolder(folder string) {
	for range 20 {
		if os.RemoveAll(folder) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, "processtest: %s could not be removed\n", folder)
}

// FreePorts returns free loopback ports. Another process may take one before a server does; see [ErrPortTaken].
func FreePorts(ctx context.Context, n int) ([]int, error) {
	ports := make([]int, 0, n)
	var err error
	for tries := 0; len(ports) < n && tries < 1000; tries++ {
		// Systems give ports above these to servers that ask for any: none of those takes one before its server begins.
		port := 20_000 + rand.IntN(10_000)
		listener, failed := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err = failed; err == nil {
			defer func() { _ = listener.Close() }()
			ports = append(ports, port)
		}
	}
	if len(ports) < n {
		return nil, err
	}
	return ports, nil
}
