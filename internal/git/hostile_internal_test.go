package git

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// saysServer answers every service with the same text.
type saysServer struct{ text []byte }

func (s *saysServer) start(context.Context, string) (*service, error) {
	return &service{
		stdin: nopWriter{io.Discard}, stdout: bytes.NewReader(s.text), stderr: &beginning{limit: maxErrorBody}, kill: func() {}, wait: func() {},
	}, nil
}

func (s *saysServer) explain(said string) error { return fmt.Errorf("the server says: %s", said) }
func (s *saysServer) close()                    {}

type nopWriter struct{ io.Writer }

func (nopWriter) Close() error { return nil }

// allocated returns the bytes that do allocates.
func allocated(do func()) int {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return int(after.TotalAlloc - before.TotalAlloc)
}

// checkShown fails for an error that is long or controls a terminal.
func checkShown(t *testing.T, err error) {
	t.Helper()
	if err == nil {
		return
	}
	if text := err.Error(); len(text) > maxShown+3 ||
		strings.ContainsFunc(text, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf) }) {
		t.Errorf("%d bytes: %q", len(text), text)
	}
}

func pkt(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

const someID = "0123456789012345678901234567890123456789"

// FuzzAdvertisement reads advertisements: they cause no panic, take memory in proportion, and give errors that can be shown.
func FuzzAdvertisement(f *testing.F) {
	for _, seed := range []string{
		"", "0000", pkt(someID+" HEAD\x00multi_ack side-band-64k symref=HEAD:refs/heads/main\n") + pkt(someID+" refs/heads/main\n") + "0000",
		pkt(someID+" refs/tags/v1\x00\n") + pkt(someID+" refs/tags/v1^{}\n") + "0000",
		pkt(strings.Repeat("0", 40)+" capabilities^{}\x00report-status\n") + "0000",
		pkt("ERR \x1b[2J\n"), pkt("version 1\n"), pkt("shallow " + someID + "\n"), "fff0", "ffff\x1b", "0003", "zzzz",
		pkt(someID + " HEAD\x00" + strings.Repeat("agent=x ", 8000)),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var err error
		used := allocated(func() {
			_, err = shownWire{&streamWire{server: &saysServer{text}}}.references(t.Context())
		})
		if most := 1<<20 + 64*len(text); used > most {
			t.Errorf("%d bytes allocated %d", len(text), used)
		}
		checkShown(t, err)
	})
}

// FuzzSideBand reads packs and the output of hooks from side-bands.
func FuzzSideBand(f *testing.F) {
	for _, seed := range []string{
		"", "0000", pkt("\x01PACK"), pkt("\x02remote: hello\r\n") + pkt("\x01"), pkt("\x03\x1b]0;owned\x07"), pkt("\x09x"), pkt(""), "0005", "0005\x03", "ffff\x01",
		pkt("\x01" + pkt("unpack ok\n") + pkt("ng refs/heads/main \x1b[2J\n") + "0000"), strings.Repeat(pkt("\x02"+strings.Repeat("x", 900)), 100),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		capabilities := capability.NewList()
		_ = capabilities.Set(capability.Sideband64k)
		said := &beginning{limit: maxErrorBody}
		var errs []error
		used := allocated(func() {
			fetch := &packp.UploadPackRequest{UploadRequest: packp.UploadRequest{Capabilities: capabilities}}
			_, err := io.Copy(io.Discard, demultiplexed(fetch.Capabilities, bytes.NewReader(text), nil))
			errs = append(errs, shown(err))
			errs = append(errs, shown(ReadPack(demultiplexed(fetch.Capabilities, bytes.NewReader(text), nil), map[Hash]RawObject{})))
			push := &packp.ReferenceUpdateRequest{Capabilities: capabilities, Progress: said}
			report := packp.NewReportStatus()
			if err := report.Decode(demultiplexed(push.Capabilities, bytes.NewReader(text), push.Progress)); err != nil {
				errs = append(errs, shown(err))
				return
			}
			_, err = notApplied(report, report.Error(), said.String())
			if err != nil {
				checkVisible(t, err.Error())
			}
		})
		if most := 4<<20 + 64*len(text); used > most {
			t.Errorf("%d bytes allocated %d", len(text), used)
		}
		for _, err := range errs {
			checkShown(t, err)
		}
		if len(said.String()) > maxBeginning+3 {
			t.Errorf("%d bytes of a hook", len(said.String()))
		}
	})
}

func checkVisible(t *testing.T, text string) {
	t.Helper()
	if strings.ContainsFunc(text, func(r rune) bool { return r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Cf) }) {
		t.Errorf("%q", text)
	}
}

// An advertisement is read up to a limit, in memory proportional to the limit.
func TestAnEndlessAdvertisementIsRefused(t *testing.T) {
	line := pkt(someID + " refs/heads/" + strings.Repeat("b", 60_000) + "\n")
	text := []byte(pkt(someID+" HEAD\x00\n") + strings.Repeat(line, (maxAdvertisement+1<<20)/len(line)))
	var err error
	used := allocated(func() {
		_, err = shownWire{&streamWire{server: &saysServer{text}}}.references(t.Context())
	})
	if err == nil || !strings.Contains(err.Error(), "longer than 64 MiB") {
		t.Errorf("%v", err)
	}
	t.Logf("%d MiB said, %d MiB allocated", len(text)>>20, used>>20)
	if used > 4*len(text) {
		t.Errorf("%d MiB were allocated", used>>20)
	}
}
