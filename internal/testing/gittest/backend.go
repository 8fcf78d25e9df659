package gittest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
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
		directory, service := filepath.Join(folder, filepath.FromSlash(path.Dir(r.URL.Path))), path.Base(r.URL.Path)
		advertises := service == "refs" && path.Base(directory) == "info" && r.Method == http.MethodGet
		if advertises {
			directory, service = filepath.Dir(directory), r.URL.Query().Get("service")
		}
		at, ok := Local(directory).(local)
		takes := service == transport.UploadPackServiceName || service == transport.ReceivePackServiceName
		if !ok || !takes || !strings.Contains(r.UserAgent(), "go-git") || !advertises && r.Method != http.MethodPost {
			next.ServeHTTP(w, r)
			return
		}
		config, _ := os.ReadFile(filepath.Join(directory, "config"))
		at.filters, at.ids = allowsFilter.Match(config), allowsIDs.Match(config)
		var answer bytes.Buffer
		kind := "result"
		var err error
		switch s := at.session(); {
		case advertises:
			kind = "advertisement"
			err = advertise(s, r, service, &answer)
		case service == transport.UploadPackServiceName:
			err = upload(s, r, &answer)
		default:
			err = receive(s, r, &answer)
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
	})
}

var (
	allowsFilter = regexp.MustCompile(`(?i)allowFilter *= *true`)
	allowsIDs    = regexp.MustCompile(`(?i)allowAnySHA1InWant *= *true`)
)

func advertise(s *session, r *http.Request, service string, w io.Writer) error {
	advertised, err := s.AdvertisedReferencesContext(r.Context())
	if err != nil && !errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return err
	}
	advertised.Prefix = [][]byte{[]byte("# service=" + service), pktline.Flush}
	return advertised.Encode(w)
}

func upload(s *session, r *http.Request, w io.Writer) error {
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
	response, err := s.UploadPack(r.Context(), request)
	if err != nil {
		return err
	}
	return response.Encode(w)
}

func receive(s *session, r *http.Request, w io.Writer) error {
	request := packp.NewReferenceUpdateRequest()
	if err := request.Decode(r.Body); err != nil {
		return err
	}
	report, err := s.ReceivePack(r.Context(), request)
	if report == nil {
		return err
	}
	return report.Encode(w)
}
