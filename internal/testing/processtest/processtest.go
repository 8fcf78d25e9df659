// Package processtest runs the servers of tests: each in a group of processes
// of its own, which ends with the test binary, with what it printed in a file
// that a failing test can show.
package processtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// ErrPortTaken is the reason of a server that ended because another process
// took a port of [FreePorts] in between.
var ErrPortTaken = errors.New("another process took the port")

// Command is a server to start.
type Command struct {
	// Name is how errors call it.
	Name string

	Binary string
	Args   []string

	// Folder is where it runs. What it prints goes to <Name>.log there.
	Folder string

	// Environment is the whole of it; nil is that of the test.
	Environment []string

	// User is the name of the user of the system that it runs as, with that user's own group; "" is that of the test. Only
	// root can name another one, and only on Unix.
	User string
}

// Process is a server that was started.
type Process struct {
	name    string
	logFile string
	cmd     *exec.Cmd
	exited  chan struct{} // closed when the process is gone
}

// Start starts a server, which outlives ctx only when that is never done.
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
		// Linux ties the parent-death signal to the thread that started the
		// child, so that thread has to live as long as the child does.
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

// Stop ends the server, if it runs, and its children. It does not ask politely:
// nobody will need what it leaves. A nil Process is none.
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

// Exited is closed when the server has ended.
func (p *Process) Exited() <-chan struct{} { return p.exited }

// Log is the end of what the server printed.
func (p *Process) Log() string {
	text, err := os.ReadFile(p.logFile)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-16<<10):])
}

// Ready asks until the server answers, or says why it never will, with what the
// server printed.
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

// RemoveFolder removes what stopped servers wrote: a child of theirs may still
// be writing for a moment.
func RemoveFolder(folder string) {
	for range 20 {
		if os.RemoveAll(folder) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, "processtest: %s could not be removed\n", folder)
}

// FreePorts returns loopback ports that nothing listens on. Servers that cannot
// be handed an open socket are started again on others when one of them is
// taken in between.
func FreePorts(ctx context.Context, n int) ([]int, error) {
	ports := make([]int, n)
	for i := range ports {
		listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = listener.Close() }()
		ports[i] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}
