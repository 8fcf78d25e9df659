package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/transport"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// localGitServer runs the git on PATH, without the environment of a surrounding git hook, unlike go-git.
type localGitServer struct {
	directory string
	patience  time.Duration // how long children of git may hold the pipes; 0: pushGrace and killDelay
}

const (
	killDelay = 5 * time.Second
	// pushGrace is the time of a push after its context has ended. A stopped git may leave a lock file: every later push fails.
	pushGrace = 2 * time.Second
)

// passedOn are environment variables without credentials, and without the repository of a surrounding hook.
var passedOn = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TZ", "TMPDIR", "LD_LIBRARY_PATH", "XDG_CONFIG_HOME",
	"GIT_EXEC_PATH", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES",
	"APPDATA", "COMSPEC", "HOMEDRIVE", "HOMEPATH", "LOCALAPPDATA", "PATHEXT", "PROGRAMDATA", "PROGRAMFILES",
	"SYSTEMDRIVE", "SYSTEMROOT", "TEMP", "TMP", "USERNAME", "USERPROFILE", "WINDIR",
}

func environment(ours []string) []string {
	var clean []string
	values := map[string]string{}
	for _, variable := range ours {
		name, value, _ := strings.Cut(variable, "=")
		values[name] = value
		if slices.ContainsFunc(passedOn, func(passed string) bool { return strings.EqualFold(passed, name) }) {
			clean = append(clean, variable)
		}
	}
	// These may set safe directories, but also headers with tokens.
	count, _ := strconv.Atoi(values["GIT_CONFIG_COUNT"])
	safe := 0
	for i := range min(count, maxConfig) {
		if strings.EqualFold(values[fmt.Sprintf("GIT_CONFIG_KEY_%d", i)], "safe.directory") {
			clean = append(clean, fmt.Sprintf("GIT_CONFIG_KEY_%d=safe.directory", safe),
				fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", safe, values[fmt.Sprintf("GIT_CONFIG_VALUE_%d", i)]))
			safe++
		}
	}
	if safe > 0 {
		clean = append(clean, fmt.Sprintf("GIT_CONFIG_COUNT=%d", safe))
	}
	return append(clean, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_DEFAULT_HASH=sha1")
}

// maxConfig limits configuration entries of the environment.
const maxConfig = 1000

func localGit(ctx context.Context, args ...string) (*exec.Cmd, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("a local repository needs git, which is not on PATH; install it or use an https:// URL")
	}
	command := exec.CommandContext(ctx, "git", args...)
	// A signalled git removes its lock files. A killed one leaves them, and every later push fails.
	command.Cancel = func() error {
		if command.Process.Signal(syscall.SIGTERM) == nil {
			return nil
		}
		return command.Process.Kill() // Windows
	}
	command.WaitDelay = killDelay
	command.Env = environment(os.Environ())
	return command, nil
}

// start allows the smallest fetches from any repository.
func (g *localGitServer) start(ctx context.Context, name string) (*service, error) {
	ctx, cancel := context.WithCancel(ctx)
	command, err := localGit(ctx,
		"-c", "uploadpack.allowFilter=true", "-c", "uploadpack.allowAnySHA1InWant=true",
		strings.TrimPrefix(name, "git-"), g.directory)
	if err != nil {
		cancel()
		return nil, err
	}
	s := &service{kill: cancel, stderr: &beginning{limit: maxErrorBody}}
	command.Stderr = s.stderr
	command.WaitDelay = cmp.Or(g.patience, command.WaitDelay)
	if name == transport.ReceivePackServiceName {
		terminate := command.Cancel
		command.Cancel = func() error {
			_ = s.stdin.Close() // half a pack is refused at once
			time.AfterFunc(pushGrace, func() { _ = terminate() })
			return nil
		}
	}
	var stdout io.ReadCloser
	if s.stdin, err = command.StdinPipe(); err == nil {
		stdout, err = command.StdoutPipe()
	}
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("git cannot be run: %w", err)
	}
	s.stdout = stdout
	// Children may hold the pipes of a killed git, and reads and writes would never end.
	ended := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(cmp.Or(g.patience, pushGrace+killDelay))
		defer timer.Stop()
		select {
		case <-timer.C:
			_, _ = s.stdin.Close(), stdout.Close()
		case <-ended:
		}
	})
	s.wait = func() {
		_ = command.Wait()
		stop()
		close(ended)
		cancel()
	}
	return s, nil
}

func (g *localGitServer) explain(said string) error {
	if strings.Contains(said, "does not appear to be a git repository") {
		return fmt.Errorf("%w: the directory is not a git repository", ErrNotFound)
	}
	return fmt.Errorf("git says: %s", said)
}

func (g *localGitServer) close() {}

// Create creates an empty, bare local repository with the remote's branch as default, if there is none.
func (c *Connector) Create(ctx context.Context, remote Remote) error {
	directory, local, err := remote.local()
	if err != nil {
		return err
	}
	if !local {
		return errors.New("only a local repository can be created")
	}
	c.Log(ctx, remote, "creates the repository", nil)
	return c.createLocal(ctx, directory, remote.Branch)
}

// createLocal renames a finished folder. The first process to rename removes the unfinished folders of others.
func (c *Connector) createLocal(ctx context.Context, directory, branch string) error {
	parent, prefix := filepath.Dir(directory), "."+filepath.Base(directory)+".new-"
	if err := c.initLocal(ctx, directory, prefix, branch); err != nil {
		if _, statErr := os.Stat(directory); statErr == nil {
			return nil // another process was faster
		}
		return fmt.Errorf("the repository cannot be created: %w", err)
	}
	siblings, _ := os.ReadDir(parent) // none if the folder cannot be listed
	for _, sibling := range siblings {
		random, begun := strings.CutPrefix(sibling.Name(), prefix)
		if _, err := strconv.ParseUint(random, 10, 64); begun && err == nil {
			_ = os.RemoveAll(filepath.Join(parent, sibling.Name()))
		}
	}
	return nil
}

func (c *Connector) initLocal(ctx context.Context, directory, prefix, branch string) error {
	parent := filepath.Dir(directory)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	temporary, err := os.MkdirTemp(parent, prefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temporary) // no longer exists after the rename
	if err := os.Chmod(temporary, 0o755); err != nil {
		return err
	}
	if c.options.Init != nil {
		err = c.options.Init(temporary)
	} else {
		err = runInit(ctx, temporary)
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(temporary, "HEAD"), []byte("ref: "+refName(branch).String()+"\n"), 0o644); err != nil {
		return err
	}
	config, err := os.OpenFile(filepath.Join(temporary, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = config.WriteString("[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n")
	if err := errors.Join(err, config.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, directory)
}

func runInit(ctx context.Context, directory string) error {
	command, err := localGit(ctx, "init", "--quiet", "--bare", "--template=", directory)
	if err != nil {
		return err
	}
	if output, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("git says: %s", strings.TrimSpace(string(output)))
	}
	return nil
}

// missingLocal looks at the path, and with .git added, like git.
func missingLocal(directory string) bool {
	for _, place := range []string{directory, directory + ".git"} {
		if _, err := os.Lstat(place); !errors.Is(err, os.ErrNotExist) {
			return false
		}
	}
	return true
}

type beginning struct {
	buffer bytes.Buffer
	limit  int
}

func (t *beginning) Write(p []byte) (int, error) {
	if room := t.limit - t.buffer.Len(); room > 0 {
		t.buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// maxBeginning is in bytes.
const maxBeginning = 2000

// String returns one line, without the prefixes of git and Git hosts.
func (t *beginning) String() string {
	var text strings.Builder
	for _, line := range strings.FieldsFunc(t.buffer.String(), func(r rune) bool { return r == '\n' || r == '\r' }) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"remote:", "error:"} {
			line = strings.TrimSpace(strings.TrimPrefix(line, prefix))
		}
		switch {
		case line == "":
			continue
		case text.Len() == 0:
		case strings.ContainsAny(text.String()[text.Len()-1:], ".:;,!?"):
			text.WriteString(" ")
		default:
			text.WriteString("; ")
		}
		text.WriteString(line)
	}
	return wording.Cut(text.String(), maxBeginning)
}
