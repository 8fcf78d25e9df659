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

// workerVariable has the memory bound of a worker, in bytes.
const workerVariable = "FLOTILLA_OBJECTS_WORKER"

const (
	exitMemory   = 76
	exitProtocol = 77
)

// isHooked: RunIfWorker was called, without which the program would start itself.
var isHooked atomic.Bool

// RunIfWorker never returns in a worker. A program with a Pool, or its TestMain, must call it first.
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

type renderOrder struct {
	Archive string
	Request *objects.Request
}

// The first byte of an answer.
const (
	answerResult = 'r'
	answerError  = 'e'
	answerNoFile = 'n' // errNoArchive
)

// serveOrders exits when its input ends, even during an order.
func serveOrders(in io.Reader, out io.Writer, bound uint64) {
	os.Stdout, os.Stderr = nil, nil // discards the output of libraries, not the errors of the runtime
	log.SetOutput(io.Discard)
	slog.SetDefault(slog.New(slog.DiscardHandler))
	time.Local = time.UTC
	http.DefaultTransport = refusingTransport{}
	debug.SetGCPercent(400) // orders share little memory
	debug.SetMemoryLimit(int64(min(bound, math.MaxInt64) / 4 * 3))
	limitData(bound + idleMemory)

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
		stopWatching := watchMemory(bound)
		answer := answerOrder(kept, o)
		stopWatching()
		if writeFrame(out, answer) != nil {
			os.Exit(0)
		}
	}
}

// maxError bounds an error, which a chart chooses freely.
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

type refusingTransport struct{}

func (refusingTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	return nil, errors.New("rendering reads nothing from the network, and " + request.URL.String() + " is asked for")
}

// idleMemory is more than the memory that the runtime reserves beside its use.
const idleMemory = 128 << 20

// watchMemory exits above the bound until stop is called. It can wait for seconds while an allocation is filled: see limitData.
func watchMemory(bound uint64) (stop func()) {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	done := make(chan struct{})
	go func() {
		ticker := time.NewTicker(10 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			metrics.Read(samples)
			if samples[0].Value.Uint64()-samples[1].Value.Uint64() > bound {
				os.Exit(exitMemory)
			}
		}
	}()
	return func() { close(done) }
}
