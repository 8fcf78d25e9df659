package renderer

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"log/slog"
	"math"
	"net/http"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// workerVariable makes a process of this program a worker; its value is the bound of memory in bytes.
const workerVariable = "FLOTILLA_OBJECTS_WORKER"

// The exit statuses by which a worker says why it ended.
const (
	exitMemory   = 76
	exitProtocol = 77
)

// isHooked is set where RunIfWorker was called: a program without it would run itself, not a worker.
var isHooked atomic.Bool

// RunIfWorker makes this process a worker if it was started as one, and then does not return. A program that makes a
// Pool calls it before anything else, and so does TestMain.
func RunIfWorker() {
	isHooked.Store(true)
	value := os.Getenv(workerVariable)
	if value == "" {
		return
	}
	bound, err := strconv.ParseUint(value, 10, 64)
	if err != nil {
		os.Exit(exitProtocol)
	}
	serveOrders(os.Stdin, os.Stdout, bound)
}

// order is what a worker is told to render.
type renderOrder struct {
	Archive string
	Request *objects.Request
}

// answer kinds: the first byte of a message from a worker.
const (
	answerResult = 'r'
	answerError  = 'e'
	answerNoFile = 'n' // errNoArchive
)

// serve answers orders until the other side ends, even in the midst of one.
func serveOrders(in io.Reader, out io.Writer, bound uint64) {
	os.Stdout = os.Stderr // what libraries print must not be taken for an answer
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	time.Local = time.UTC
	http.DefaultTransport = refusingTransport{}
	debug.SetGCPercent(400) // little is kept from one order to the next
	debug.SetMemoryLimit(int64(min(bound, math.MaxInt64) / 4 * 3))
	go watchMemory(bound)

	orders := make(chan renderOrder)
	go func() {
		reader := bufio.NewReader(in)
		for {
			message, err := readFrame(reader)
			if err != nil {
				os.Exit(0)
			}
			var o renderOrder
			if json.Unmarshal(message, &o) != nil || o.Request == nil {
				os.Exit(exitProtocol)
			}
			orders <- o
		}
	}()
	kept := newArtifactCache()
	for o := range orders {
		if writeFrame(out, answerOrder(kept, o)) != nil {
			os.Exit(0)
		}
	}
}

// maxError bounds the text of an error, in which a chart may have put whatever it likes.
const maxError = 2 << 10

func answerOrder(kept *artifactCache, o renderOrder) []byte {
	result, err := render(context.Background(), kept, o.Archive, o.Request)
	if errors.Is(err, errNoArchive) {
		return []byte{answerNoFile}
	}
	if err == nil {
		var text []byte
		if text, err = encode(result); err == nil {
			return append([]byte{answerResult}, text...)
		}
	}
	return append([]byte{answerError}, wording.CutMiddle(wording.Visible(err.Error()), maxError)...)
}

// refusing is the transport of a worker: whatever a library would fetch is refused.
type refusingTransport struct{}

func (refusingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, errors.New("rendering reads nothing from the network, and " + request.URL.String() + " is asked for")
}

// watchMemory ends the process when it has more memory than it may. Nothing in Go bounds that by itself.
func watchMemory(bound uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for range time.Tick(10 * time.Millisecond) {
		metrics.Read(samples)
		if samples[0].Value.Uint64()-samples[1].Value.Uint64() > bound {
			os.Exit(exitMemory)
		}
	}
}
