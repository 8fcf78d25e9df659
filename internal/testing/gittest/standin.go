package gittest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/sideband"
)

// StandIn makes a server advertise and refuse like another one: internal/git/wire.go has sources. It is safe for
// concurrent use.
type StandIn struct {
	Upload, Receive string
	// Insists are capabilities. A fetch needs one of them, else the answer is Refusal.
	Insists []string
	Refusal string
	// Filters are the supported filters.
	Filters []string
	// NoIDs refuses objects by id, even if advertised.
	NoIDs bool
	// MaxPush is in bytes; 0 is unlimited. TooLarge answers a larger push.
	MaxPush  int
	TooLarge string

	mu       sync.Mutex
	tips     map[string]bool
	requests []UploadRequest
}

// UploadRequest is a request of a fetch.
type UploadRequest struct {
	Capabilities []string
	Wants        int
	Filter       string // "" for none
	Refused      string // "" when it was not
}

// AzureRepos imitates Azure Repos on a repository that allows filters and any object.
func AzureRepos() *StandIn {
	return &StandIn{
		Upload: " multi_ack thin-pack side-band side-band-64k no-progress multi_ack_detailed no-done shallow allow-tip-sha1-in-want filter " +
			"symref=HEAD:refs/heads/main",
		Receive:  "report-status side-band-64k delete-refs",
		Insists:  []string{"multi_ack", "multi_ack_detailed"},
		Refusal:  "TF401041: The Git protocol sent is not as expected (Clients must support multi-ack.).",
		Filters:  []string{"blob:none", "tree:0"},
		MaxPush:  64 << 20, // Azure Repos' are 5 GB
		TooLarge: "VS403658: The object is 1074200997 bytes, which is greater than the 10485760 byte limit for objects in this repository.",
	}
}

// CodeCommit imitates AWS CodeCommit. The repository has to allow any object.
func CodeCommit() *StandIn {
	return &StandIn{
		Upload:  "multi_ack_detailed shallow side-band-64k thin-pack allow-tip-sha1-in-want allow-reachable-sha1-in-want",
		Receive: "report-status side-band-64k delete-refs",
		Insists: []string{"multi_ack_detailed"},
		Refusal: "unsupported protocol",
	}
}

// Requests returns all fetches, refused ones included.
func (s *StandIn) Requests() []UploadRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Before puts the stand-in before a server, which gets whole requests.
func (s *StandIn) Before(t testing.TB, server http.Handler) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Git-Protocol") != "" {
			t.Errorf("%s asks for protocol %q", r.URL, r.Header.Get("Git-Protocol"))
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case strings.HasSuffix(r.URL.Path, "/info/refs"):
			answer := httptest.NewRecorder()
			server.ServeHTTP(answer, r)
			capabilities := s.Upload
			if r.URL.Query().Get("service") == "git-receive-pack" {
				capabilities = s.Receive
			}
			w.Header().Set("Content-Type", answer.Header().Get("Content-Type"))
			w.WriteHeader(answer.Code)
			_, _ = w.Write(s.advertise(answer.Body.Bytes(), capabilities))
		case strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
			if problem := s.fetched(body); problem != "" {
				http.Error(w, problem, http.StatusBadRequest)
				return
			}
			server.ServeHTTP(w, r)
		case strings.HasSuffix(r.URL.Path, "/git-receive-pack"):
			command, capabilities, problem := pushed(body)
			if problem == "" {
				problem = unknown(capabilities, s.Receive)
			}
			if problem != "" {
				http.Error(w, problem, http.StatusBadRequest)
				return
			}
			if s.MaxPush > 0 && len(body) > s.MaxPush {
				s.refuse(w, command)
				return
			}
			server.ServeHTTP(w, r)
		default:
			server.ServeHTTP(w, r)
		}
	})
}

// advertise replaces capabilities, and notes the tips.
func (s *StandIn) advertise(body []byte, capabilities string) []byte {
	var out bytes.Buffer
	encoder, first := pktline.NewEncoder(&out), true
	tips := map[string]bool{}
	for lines := pktline.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		line := lines.Bytes()
		if len(line) == 0 {
			_ = encoder.Flush()
			continue
		}
		if len(line) > 40 && line[0] != '#' {
			tips[string(line[:40])] = true
		}
		if reference, _, ok := bytes.Cut(line, []byte{0}); ok && first {
			first = false
			_ = encoder.EncodeString(string(reference) + "\x00" + capabilities + "\n")
			continue
		}
		_ = encoder.EncodeString(string(line))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tips = tips
	return out.Bytes()
}

func (s *StandIn) fetched(body []byte) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var request UploadRequest
	byID := false
	for lines := pktline.NewScanner(bytes.NewReader(body)); lines.Scan(); {
		fields := strings.Fields(string(lines.Bytes()))
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "want":
			request.Wants++
			byID = byID || !s.tips[fields[1]]
			if request.Wants == 1 {
				request.Capabilities = fields[2:]
			}
		case "filter":
			request.Filter = fields[1]
		}
	}
	has := func(name string) bool { return slices.Contains(request.Capabilities, name) }
	switch {
	case len(s.Insists) > 0 && !slices.ContainsFunc(s.Insists, has):
		request.Refused = s.Refusal
	case request.Filter != "" && !slices.Contains(s.Filters, request.Filter):
		request.Refused = "the filter " + request.Filter + " is not supported"
	case byID && s.NoIDs:
		request.Refused = "an object was asked for that is no tip of a branch"
	default:
		request.Refused = unknown(request.Capabilities, s.Upload)
	}
	s.requests = append(s.requests, request)
	return request.Refused
}

func unknown(capabilities []string, advertised string) string {
	for _, name := range capabilities {
		if !slices.Contains(strings.Fields(advertised), name) {
			return fmt.Sprintf("the capability %s was not advertised", name)
		}
	}
	return ""
}

func pushed(body []byte) (command *packp.Command, capabilities []string, problem string) {
	request := packp.NewReferenceUpdateRequest()
	if err := request.Decode(bytes.NewReader(body)); err != nil || len(request.Commands) != 1 {
		return nil, nil, fmt.Sprintf("the push cannot be read, or is of %d branches: %v", len(request.Commands), err)
	}
	return request.Commands[0], strings.Fields(request.Capabilities.String()), ""
}

// refuse reports like Azure Repos: the reason is at the branch.
func (s *StandIn) refuse(w http.ResponseWriter, command *packp.Command) {
	report := packp.NewReportStatus()
	report.UnpackStatus = "error"
	report.CommandStatuses = []*packp.CommandStatus{{ReferenceName: command.Name, Status: s.TooLarge}}
	var text, answer bytes.Buffer
	_ = report.Encode(&text)
	_, _ = sideband.NewMuxer(sideband.Sideband64k, &answer).WriteChannel(sideband.PackData, text.Bytes())
	_ = pktline.NewEncoder(&answer).Flush()
	w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
	_, _ = w.Write(answer.Bytes())
}
