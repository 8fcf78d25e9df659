package gittest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
)

// Backend serves the repositories in a folder over http without processes. next serves what [Local] does not, and other
// clients than go-git.
func Backend(folder string, next http.Handler) http.Handler {
	if GitServes {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at, service, _ := requested(r)
		directory := filepath.Join(folder, filepath.FromSlash(at))
		repository, ok := Local(directory).(local)
		if !ok || service == "" || !strings.Contains(r.UserAgent(), "go-git") {
			next.ServeHTTP(w, r)
			return
		}
		config, _ := os.ReadFile(filepath.Join(directory, "config"))
		repository.filters, repository.ids = allowsFilter.Match(config), allowsIDs.Match(config)
		repository.session().ServeHTTP(w, r)
	})
}

// requested returns the repository and the service of a request, "" for others.
func requested(r *http.Request) (at, service string, advertises bool) {
	at, service = path.Dir(r.URL.Path), path.Base(r.URL.Path)
	method := http.MethodPost
	if advertises = strings.HasSuffix(r.URL.Path, "/info/refs"); advertises {
		at, service, method = path.Dir(at), r.URL.Query().Get("service"), http.MethodGet
	}
	if service != transport.UploadPackServiceName && service != transport.ReceivePackServiceName || r.Method != method {
		return at, "", false
	}
	return at, service, advertises
}

// RoundTrip answers a request without a server.
func (s *session) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	recorder := httptest.NewRecorder()
	s.ServeHTTP(recorder, r)
	response := recorder.Result()
	response.Request = r
	return response, nil
}

func (s *session) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer bytes.Buffer
	var err error
	_, service, advertises := requested(r)
	kind := "result"
	switch {
	case advertises:
		kind = "advertisement"
		err = answerReferences(s, service, &answer)
	case service == transport.UploadPackServiceName:
		err = answerFetch(s, r, &answer)
	default:
		err = answerPush(s, r, &answer)
	}
	if refused := (*pktline.ErrorLine)(nil); errors.As(err, &refused) {
		answer.Reset()
		err = refused.Encode(&answer)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", fmt.Sprintf("application/x-%s-%s", service, kind))
	w.Header().Set("Cache-Control", "no-cache, max-age=0, must-revalidate")
	_, _ = answer.WriteTo(w)
}

var (
	allowsFilter = regexp.MustCompile(`(?i)allowFilter *= *true`)
	allowsIDs    = regexp.MustCompile(`(?i)allowAnySHA1InWant *= *true`)
)

func answerReferences(s *session, service string, w io.Writer) error {
	advertised, err := s.advertise()
	if err != nil {
		return err
	}
	advertised.Prefix = [][]byte{[]byte("# service=" + service), pktline.Flush}
	return advertised.Encode(w)
}

func answerFetch(s *session, r *http.Request, w io.Writer) error {
	request := packp.NewUploadPackRequest()
	lines := pktline.NewScanner(r.Body)
	for lines.Scan() {
		name, rest, _ := strings.Cut(strings.TrimSpace(string(lines.Bytes())), " ")
		switch name {
		case "want":
			request.Wants = append(request.Wants, plumbing.NewHash(rest[:40]))
		case "have":
			request.Haves = append(request.Haves, plumbing.NewHash(rest[:40]))
		case "filter":
			request.Filter = packp.Filter(rest)
		case "deepen":
			depth := 0
			if _, err := fmt.Sscan(rest, &depth); err != nil {
				return err
			}
			request.Depth = packp.DepthCommits(depth)
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	response, err := s.upload(request)
	if err != nil {
		return err
	}
	return response.Encode(w)
}

func answerPush(s *session, r *http.Request, w io.Writer) error {
	request := packp.NewReferenceUpdateRequest()
	if err := request.Decode(r.Body); err != nil {
		return err
	}
	return s.push(request).Encode(w)
}
