package gitops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// localWire runs the git on PATH over a directory. It does not use go-git's
// file transport: that one waits forever for a process whose output nobody
// reads, drops what the process says on stderr after its first line, and hands
// it the environment of a surrounding git hook.
type localWire struct {
	directory string
	idle      *process // has advertised and waits for a request
}

const (
	// killDelay is how long a process may take to end after it was asked to.
	killDelay = 5 * time.Second
	// pushGrace is how long a push may go on after its context has ended. A git
	// that is ended between making a lock file and noting that it has one leaves
	// it, and nobody can push any more.
	pushGrace = 2 * time.Second
)

type process struct {
	command *exec.Cmd
	cancel  context.CancelFunc
	stdin   io.WriteCloser
	stdout  io.Reader
	stderr  *tail
	adverts *packp.AdvRefs
	empty   bool
}

// otherRepository are the variables of `git rev-parse --local-env-vars`, and
// those of a running receive-pack: under a git hook they are about its
// repository, not about ours. GIT_CONFIG_COUNT stays, because safe.directory
// may come that way.
var otherRepository = []string{
	"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_DIR",
	"GIT_GRAFT_FILE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_INTERNAL_SUPER_PREFIX", "GIT_NAMESPACE",
	"GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_PREFIX", "GIT_PROTOCOL", "GIT_QUARANTINE_PATH",
	"GIT_REPLACE_REF_BASE", "GIT_SHALLOW_FILE", "GIT_WORK_TREE",
}

// localGit is a command of the git on PATH, outside any other repository.
func localGit(ctx context.Context, args ...string) (*exec.Cmd, error) {
	if _, err := exec.LookPath("git"); err != nil {
		return nil, errors.New("a local repository needs git, which is not on PATH; install it or use an https:// URL")
	}
	command := exec.CommandContext(ctx, "git", args...)
	// Asked to end, git takes its lock files away; killed, it leaves them, and
	// nobody can push any more.
	command.Cancel = func() error {
		if command.Process.Signal(syscall.SIGTERM) == nil {
			return nil
		}
		return command.Process.Kill() // Windows
	}
	command.WaitDelay = killDelay
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if !slices.Contains(otherRepository, name) {
			command.Env = append(command.Env, variable)
		}
	}
	command.Env = append(command.Env, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_DEFAULT_HASH=sha1")
	return command, nil
}

// start runs a service and reads its advertisement. The configuration lets us
// fetch as sparingly from a repository that was made by hand as from our own.
func (w *localWire) start(ctx context.Context, service string) (*process, error) {
	ctx, cancel := context.WithCancel(ctx)
	command, err := localGit(ctx,
		"-c", "uploadpack.allowFilter=true", "-c", "uploadpack.allowAnySHA1InWant=true",
		strings.TrimPrefix(service, "git-"), w.directory)
	if err != nil {
		cancel()
		return nil, err
	}
	p := &process{command: command, cancel: cancel, stderr: &tail{limit: maxErrorBody}, adverts: packp.NewAdvRefs()}
	command.Stderr = p.stderr
	if service == transport.ReceivePackServiceName {
		terminate := command.Cancel
		command.Cancel = func() error {
			_ = p.stdin.Close() // half a pack is refused at once
			time.AfterFunc(pushGrace, func() { _ = terminate() })
			return nil
		}
	}
	if p.stdin, err = command.StdinPipe(); err == nil {
		p.stdout, err = command.StdoutPipe()
	}
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("git cannot be run: %w", err)
	}
	bounded := &boundedReader{reader: p.stdout, left: maxAdvertisement, limit: maxAdvertisement}
	err = p.adverts.Decode(bounded)
	switch {
	case err == nil && !p.adverts.IsEmpty():
		transport.FilterUnsupportedCapabilities(p.adverts.Capabilities)
	case err == nil, errors.Is(err, packp.ErrEmptyAdvRefs):
		p.empty = true
	default:
		return nil, p.fail(ctx, otherHash(err))
	}
	return p, nil
}

// fail ends the process and makes its last words the error.
func (p *process) fail(ctx context.Context, err error) error {
	cause := ctx.Err()
	_ = p.end(true)
	said := p.stderr.String()
	switch {
	case cause != nil:
		return cause
	case strings.Contains(said, "does not appear to be a git repository"):
		return fmt.Errorf("%w: the directory is not a git repository", ErrNotFound)
	case said != "" && !errors.Is(err, ErrTooLarge) && !errors.Is(err, errOtherHash):
		return fmt.Errorf("git says: %s", said)
	}
	return err
}

// end waits for the process; kill does not wait for it to finish its work.
func (p *process) end(kill bool) error {
	_ = p.stdin.Close()
	if kill {
		p.cancel()
	}
	err := p.command.Wait()
	p.cancel()
	return err
}

func (w *localWire) references(ctx context.Context) (*packp.AdvRefs, error) {
	w.close()
	p, err := w.start(ctx, transport.UploadPackServiceName)
	if err != nil {
		return nil, err
	}
	if p.empty {
		_ = p.end(true)
		return nil, transport.ErrEmptyRemoteRepository
	}
	w.idle = p
	return p.adverts, nil
}

func (w *localWire) fetch(ctx context.Context, request *packp.UploadPackRequest, read func(io.Reader) error) error {
	p := w.idle
	w.idle = nil
	if p == nil {
		var err error
		if p, err = w.start(ctx, transport.UploadPackServiceName); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, p.cancel)
	defer stop()
	if err := p.fetch(request, read); err != nil {
		return p.fail(ctx, err)
	}
	_ = p.end(false) // the pack had its checksum
	return nil
}

func (p *process) fetch(request *packp.UploadPackRequest, read func(io.Reader) error) error {
	var b bytes.Buffer
	if err := request.UploadRequest.Encode(&b); err != nil {
		return err
	}
	if err := request.UploadHaves.Encode(&b, false); err != nil {
		return err
	}
	b.WriteString("0009done\n")
	if _, err := p.stdin.Write(b.Bytes()); err != nil {
		return err
	}
	_ = p.stdin.Close()
	response := packp.NewUploadPackResponse(request)
	bounded := &boundedReader{reader: p.stdout, left: maxPackBytes, limit: maxPackBytes}
	if err := response.Decode(io.NopCloser(bounded)); err != nil {
		return err
	}
	if err := read(response); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, response)
	return err
}

func (w *localWire) push(ctx context.Context, prepare prepareFunc) (*packp.ReportStatus, error) {
	w.close()
	p, err := w.start(ctx, transport.ReceivePackServiceName)
	if err != nil {
		return nil, err
	}
	request, err := prepare(p.adverts)
	if err != nil {
		_, _ = io.WriteString(p.stdin, "0000")
		_ = p.end(false)
		return nil, err
	}
	report, err := p.push(request)
	if err != nil {
		return nil, p.fail(ctx, err)
	}
	_ = p.end(false) // the report says how it went
	return report, report.Error()
}

func (p *process) push(request *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	writing := make(chan error, 1)
	go func() {
		err := request.Encode(p.stdin)
		_ = p.stdin.Close()
		writing <- err
	}()
	report := packp.NewReportStatus()
	bounded := &boundedReader{reader: p.stdout, left: maxReport, limit: maxReport}
	err := report.Decode(reportStream(request, bounded))
	if err != nil {
		p.cancel() // else the writer may wait for a reader
	}
	written := <-writing
	if err != nil {
		return nil, errors.Join(err, written)
	}
	return report, nil
}

func (w *localWire) close() {
	if w.idle == nil {
		return
	}
	_, _ = io.WriteString(w.idle.stdin, "0000") // a polite end
	_ = w.idle.end(false)
	w.idle = nil
}

// createLocal makes a bare repository, unless one is there. It appears whole or
// not at all: it is made beside its place and renamed into it.
func createLocal(ctx context.Context, directory, branch string) error {
	parent := filepath.Dir(directory)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return fmt.Errorf("the repository cannot be created: %w", err)
	}
	temporary, err := os.MkdirTemp(parent, "."+filepath.Base(directory)+".new-")
	if err != nil {
		return fmt.Errorf("the repository cannot be created: %w", err)
	}
	defer os.RemoveAll(temporary) // gone after the rename
	if err := os.Chmod(temporary, 0o755); err != nil {
		return fmt.Errorf("the repository cannot be created: %w", err)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--bare", "--template=", temporary},
		{"-C", temporary, "symbolic-ref", "HEAD", refName(branch).String()},
		{"-C", temporary, "config", "uploadpack.allowFilter", "true"},
		{"-C", temporary, "config", "uploadpack.allowAnySHA1InWant", "true"},
	} {
		command, err := localGit(ctx, args...)
		if err != nil {
			return err
		}
		if output, err := command.CombinedOutput(); err != nil {
			return fmt.Errorf("the repository cannot be created: git says: %s", strings.TrimSpace(string(output)))
		}
	}
	if err := os.Rename(temporary, directory); err != nil {
		if _, statErr := os.Stat(directory); statErr == nil {
			return nil // somebody else was faster
		}
		return fmt.Errorf("the repository cannot be created: %w", err)
	}
	return nil
}

// missingLocal reports whether nothing is at the place of a local repository,
// where git also looks for one whose name ends in .git.
func missingLocal(directory string) bool {
	for _, place := range []string{directory, directory + ".git"} {
		if _, err := os.Lstat(place); !errors.Is(err, os.ErrNotExist) {
			return false
		}
	}
	return true
}

// tail keeps the first bytes of what a process or a server says.
type tail struct {
	buffer bytes.Buffer
	limit  int
}

func (t *tail) Write(p []byte) (int, error) {
	if room := t.limit - t.buffer.Len(); room > 0 {
		t.buffer.Write(p[:min(room, len(p))])
	}
	return len(p), nil
}

// String is the text on one line.
func (t *tail) String() string {
	return strings.Join(strings.FieldsFunc(t.buffer.String(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}
