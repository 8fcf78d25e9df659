package renderer

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/budget"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Pool renders in processes of this program, so that an endless or greedy chart causes only an error.
type Pool struct {
	fetcher artifact.Fetcher
	options PoolOptions
	cache   *cache

	mutex    sync.Mutex
	exceeded map[artifactPath]error // renderings that exceeded a bound
}

type artifactPath struct{ artifact, path string }

// PoolOptions configure a Pool.
type PoolOptions struct {
	Cache   *diskcache.Folder // nil caches in memory only
	Time    time.Duration     // per request; 30 seconds by default
	Memory  uint64            // bytes per worker; 512 MiB by default
	Workers *Workers          // one for each processor by default
}

// NewPool makes a pool.
func NewPool(fetcher artifact.Fetcher, options PoolOptions) *Pool {
	options.Time, options.Memory = cmp.Or(options.Time, 30*time.Second), cmp.Or(options.Memory, 512<<20)
	if options.Workers == nil {
		options.Workers = NewWorkers(runtime.GOMAXPROCS(0))
	}
	return &Pool{fetcher: fetcher, options: options, cache: newCache(options.Cache), exceeded: map[artifactPath]error{}}
}

// Close closes the workers.
func (p *Pool) Close() { p.options.Workers.Close() }

// Workers are processes of pools with equal memory.
type Workers struct {
	free   chan *worker
	closed sync.Once
}

// NewWorkers starts processes on demand. They end with this process or Close.
func NewWorkers(count int) *Workers {
	w := &Workers{free: make(chan *worker, count)}
	for range count {
		w.free <- &worker{}
	}
	return w
}

// Close ends all processes after their current requests.
func (w *Workers) Close() {
	w.closed.Do(func() {
		for range cap(w.free) {
			(<-w.free).end()
		}
	})
}

// Render implements Renderer.
func (p *Pool) Render(ctx context.Context, request *objects.Request) (*objects.Rendering, error) {
	if !request.Artifact.IsPinned() {
		return nil, fmt.Errorf("%s: it is not pinned to a commit or a digest, so it cannot be rendered", describe(request))
	}
	keys, err := p.fetcher.Keys(request.Artifact)
	if err != nil {
		return nil, err
	}
	return p.cache.get(ctx, cacheKey(request, keys), request.Artifact.Pin.Version, func() ([]byte, error) {
		text, err := p.fetchAndRender(ctx, request)
		for range maxRefetches {
			if !errors.Is(err, errNoArchive) {
				break
			}
			text, err = p.fetchAndRender(ctx, request)
		}
		return text, err
	})
}

// maxRefetches bounds fetches of an archive that other processes remove.
const maxRefetches = 3

func (p *Pool) fetchAndRender(ctx context.Context, request *objects.Request) ([]byte, error) {
	archive, err := p.fetcher.Fetch(ctx, request.Artifact)
	if err != nil {
		return nil, err
	}
	text, err := p.renderBounded(ctx, renderOrder{archive, request})
	if err != nil && ctx.Err() == nil {
		err = fmt.Errorf("%s: %w", describe(request), err)
	}
	return text, err
}

// boundError reports an exceeded bound of time or memory.
type boundError struct {
	error
	ofTime bool
}

// renderBounded refuses content that has exceeded a bound: with the values of a thousand hosts, trying would take hours.
func (p *Pool) renderBounded(ctx context.Context, o renderOrder) ([]byte, error) {
	message, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	var w *worker
	select {
	case w = <-p.options.Workers.free:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { p.options.Workers.free <- w }()
	defer budget.Begin(ctx, wording.Visible(wording.Cut(describe(o.Request), 200)))()
	of := artifactPath{o.Request.Artifact.Key(), o.Request.Path}
	p.mutex.Lock()
	before := p.exceeded[of]
	p.mutex.Unlock()
	if before != nil {
		return nil, fmt.Errorf("it was not rendered, since with the values of another assignment %w", before)
	}
	isFresh := w.process == nil
	text, err := p.renderOn(ctx, w, message)
	if bound, isBound := errors.AsType[boundError](err); isBound && !bound.ofTime && !isFresh {
		text, err = p.renderOn(ctx, w, message) // without the caches of earlier requests
	}
	if _, isBound := errors.AsType[boundError](err); isBound {
		p.mutex.Lock()
		p.exceeded[of] = err
		p.mutex.Unlock()
	}
	return text, err
}

// renderOn ends the process after a failure.
func (p *Pool) renderOn(ctx context.Context, w *worker, message []byte) ([]byte, error) {
	if w.process == nil {
		if err := w.start(p.options.Memory); err != nil {
			return nil, fmt.Errorf("the process that renders cannot be started: %w", err)
		}
	}
	bounded, cancel := context.WithTimeoutCause(ctx, p.options.Time,
		boundError{fmt.Errorf("it takes more than %s to render", p.options.Time), true})
	defer cancel()
	answer, err := w.exchange(bounded, message)
	if err != nil {
		status, outOfMemory := w.end()
		switch {
		case bounded.Err() != nil:
			return nil, context.Cause(bounded)
		case outOfMemory:
			return nil, boundError{fmt.Errorf("it needs more than %d MiB of memory to render", p.options.Memory>>20), false}
		}
		return nil, boundError{
			fmt.Errorf("it ended the process that renders (status %d), perhaps as its templates call themselves without an end", status),
			false,
		}
	}
	switch {
	case len(answer) > 0 && answer[0] == answerResult:
		return answer[1:], nil
	case len(answer) > 0 && answer[0] == answerNoFile:
		return nil, errNoArchive
	case len(answer) > 0 && answer[0] == answerError:
		return nil, errors.New(string(answer[1:]))
	}
	w.end()
	return nil, errors.New("the process that renders gave no answer")
}

// worker is a process that renders one request at a time.
type worker struct {
	process *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	crash   *beginning // of standard error
}

// beginning keeps the first 4 KiB of a text.
type beginning struct{ text []byte }

func (b *beginning) Write(p []byte) (int, error) {
	b.text = append(b.text, p[:min(len(p), 4<<10-len(b.text))]...)
	return len(p), nil
}

// start runs this program without its environment, which may have credentials.
func (w *worker) start(memory uint64) error {
	if !isHooked.Load() {
		return errors.New("renderer.RunIfWorker was not called when this program began")
	}
	program, err := os.Executable()
	if err != nil {
		return err
	}
	process := exec.Command(program) //nolint:noctx // the process outlives the request; end stops it
	process.Dir = os.TempDir()
	process.Env = []string{workerVariable + "=" + strconv.FormatUint(memory, 10), "PATH=", "TZ=UTC", "GOMAXPROCS=2"}
	if runtime.GOOS == "windows" {
		process.Env = append(process.Env, "SystemRoot="+os.Getenv("SystemRoot"))
	}
	if w.in, err = process.StdinPipe(); err != nil {
		return err
	}
	out, err := process.StdoutPipe()
	if err != nil {
		return err
	}
	w.out, w.crash = bufio.NewReader(out), &beginning{}
	process.Stderr = w.crash
	if err := process.Start(); err != nil {
		return err
	}
	w.process = process
	return nil
}

// exchange sends an order. The caller must end the worker after an error.
func (w *worker) exchange(ctx context.Context, message []byte) ([]byte, error) {
	stop := context.AfterFunc(ctx, func() { _ = w.process.Process.Kill() })
	defer stop()
	if err := writeFrame(w.in, message); err != nil {
		return nil, err
	}
	answer, err := readFrame(w.out)
	if err == nil && !stop() {
		return nil, ctx.Err() // the context has killed the process
	}
	return answer, err
}

// end returns the exit status, and whether memory was refused.
func (w *worker) end() (status int, outOfMemory bool) {
	if w.process == nil {
		return 0, false
	}
	_ = w.in.Close()
	_ = w.process.Wait()
	status = w.process.ProcessState.ExitCode()
	outOfMemory = status == exitMemory || outOfMemoryPattern.Match(w.crash.text)
	*w = worker{}
	return status, outOfMemory
}

// outOfMemoryPattern matches errors of the Go runtime that end a process.
var outOfMemoryPattern = regexp.MustCompile(`out of memory|cannot allocate memory`)
