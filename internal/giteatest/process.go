package giteatest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"
)

// process is a Gitea process and its folder, which holds everything it writes.
type process struct {
	folder string
	cmd    *exec.Cmd
	exited chan struct{} // closed when the process is gone
}

func (p *process) start(ctx context.Context, binary string, args ...string) error {
	output, err := os.Create(p.logFile())
	if err != nil {
		return err
	}
	defer func() { _ = output.Close() }()

	p.cmd = exec.CommandContext(ctx, binary, args...)
	p.cmd.Dir = p.folder
	p.cmd.Env = p.environment()
	p.cmd.Stdout = output
	p.cmd.Stderr = output
	p.cmd.SysProcAttr = dieWithParent()
	p.exited = make(chan struct{})

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
	return <-started
}

// environment is the test's own without what would steer Gitea or Git: tests
// may run inside a Git hook, whose GIT_DIR every child would follow.
func (p *process) environment() []string {
	var environment []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "GITEA_") || name == "HOME" {
			continue
		}
		environment = append(environment, variable)
	}
	return append(environment, "HOME="+p.folder, "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true")
}

// stop ends the process, if it runs, and removes its folder. It does not ask
// politely: nobody will read that folder again.
func (p *process) stop() {
	if p.exited != nil {
		if p.cmd.Process != nil {
			_ = p.cmd.Process.Kill()
		}
		<-p.exited
	}
	// A Git process of Gitea's may still be writing for a moment.
	for range 20 {
		if os.RemoveAll(p.folder) == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	fmt.Fprintf(os.Stderr, "giteatest: %s could not be removed\n", p.folder)
}

// log is the end of what Gitea printed.
func (p *process) log() string {
	text, err := os.ReadFile(p.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-8<<10):])
}

func (p *process) logFile() string { return filepath.Join(p.folder, "output.log") }
