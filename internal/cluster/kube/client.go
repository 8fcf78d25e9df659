package kube

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

const (
	// maxAnswer bounds one uncompressed answer in bytes. Memory use is much lower: objects are read one at a time.
	maxAnswer = 256 << 20
	// maxRefusal bounds the body of an error status.
	maxRefusal = 64 << 10
	// maxTries bounds the attempts at a busy server.
	maxTries = 4
	// maxWait bounds the wait before another attempt.
	maxWait = 2 * time.Second
)

// ClusterClient sends requests to one cluster. It is safe for concurrent use.
type ClusterClient struct {
	*requester
	*discovery
}

type requester struct {
	server string // without a trailing slash
	http   *http.Client
	close  func()
	// scrubber removes secrets from errors.
	scrubber func() secret.Scrubber
}

type discovery struct {
	*requester

	mu           sync.Mutex
	versions     map[ResourceKind]string // the served ones
	isKubernetes bool                    // it has answered as only Kubernetes does
	// resources caches resources by group version and kind.
	resources map[string]map[string]Resource
	// discovered counts bytes.
	discovered int64
}

// get requests a list, whose body the caller must close.
func (r *requester) get(ctx context.Context, path string, kind ResourceKind) (*http.Response, error) {
	response, answer, err := r.exchange(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	if answer != nil {
		return nil, refusedList(response, *answer, "list", kind)
	}
	return response, nil
}

// exchange repeats a request while the server is busy. answer is the body of an error status; if it is nil, the caller
// must close the response's body.
func (r *requester) exchange(
	ctx context.Context,
	method, path, contentType string,
	body []byte,
) (response *http.Response, answer *metav1.Status, err error) {
	for try := 1; ; try++ {
		request, err := http.NewRequestWithContext(ctx, method, r.server+path, bytes.NewReader(body))
		if err != nil {
			return nil, nil, failf(ReasonConfiguration, "the URL of the API server cannot be used")
		}
		if body == nil {
			request.Body, request.GetBody = http.NoBody, nil
		}
		request.Header.Set("Accept", "application/json")
		if contentType != "" {
			request.Header.Set("Content-Type", contentType)
		}
		response, err := r.http.Do(request)
		if err != nil {
			return nil, nil, transportError(ctx, err)
		}
		switch response.StatusCode {
		case http.StatusOK, http.StatusCreated, http.StatusAccepted:
			if kind, _, err := mime.ParseMediaType(response.Header.Get("Content-Type")); err != nil || kind != "application/json" {
				finish(response)
				return nil, nil, notKubernetes()
			}
			return response, nil, nil
		}
		answer := readStatus(response)
		finish(response)
		again := response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable
		if !again || try == maxTries || wait.For(ctx, waitFor(response, try)) != nil {
			return response, &answer, nil //nolint:nilerr // the answer says why, more than that the time has run out
		}
	}
}

func refusedList(response *http.Response, answer metav1.Status, verb string, kind ResourceKind) error {
	switch {
	case response.StatusCode == http.StatusGone && answer.Kind == "Status":
		return errExpired
	case response.StatusCode != http.StatusNotFound:
	case answer.Kind == "Status" && answer.Details != nil && answer.Details.Name != "":
		return errNoObject
	case answer.Kind == "Status" || answer.Message == notFoundPage:
		return errNoKind
	}
	return refusal(response, answer, verb, kind)
}

// finish reads the rest of an answer, so that the connection can be reused.
func finish(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, maxRefusal)
	_ = response.Body.Close()
}

// notFoundPage is an API server's answer for a path that it does not serve.
const notFoundPage = "404 page not found"

func readStatus(response *http.Response) metav1.Status {
	var answer metav1.Status
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // the code is enough
	if json.Unmarshal(text, &answer) != nil || answer.Kind != "Status" {
		answer = metav1.Status{Message: string(bytes.TrimSpace(text))}
	}
	return answer
}

func waitFor(response *http.Response, try int) time.Duration {
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	return min(100*time.Millisecond<<try, maxWait)
}

// withoutSecrets removes secrets from an error, except errors of contexts.
func (r *requester) withoutSecrets(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return scrubbed(err, r.scrubber)
}

// ServerVersion returns a version such as "v1.31.2".
func (c *ClusterClient) ServerVersion(ctx context.Context) (string, error) {
	return c.serverVersion(ctx)
}

func (d *discovery) serverVersion(ctx context.Context) (string, error) {
	var answer version.Info
	err := d.getJSON(ctx, "/version", ResourceKind{Resource: "the version"}, &answer)
	switch {
	case err == errNoKind || err == errNoObject || err == errExpired: //nolint:errorlint // made here, never wrapped
		err = notKubernetes()
	case err == nil && (answer.GitVersion == "" || !isName(answer.GitVersion)):
		err = notKubernetes()
	}
	if err != nil {
		return "", d.withoutSecrets(err)
	}
	d.setKubernetes()
	return answer.GitVersion, nil
}

// checkKubernetes verifies that a 404 comes from a Kubernetes API server.
func (d *discovery) checkKubernetes(ctx context.Context) error {
	d.mu.Lock()
	known := d.isKubernetes
	d.mu.Unlock()
	if known {
		return nil
	}
	_, err := d.serverVersion(ctx)
	if ReasonOf(err) == ReasonForbidden { // only Kubernetes' access control answers so
		d.setKubernetes()
		return nil
	}
	return err
}

func (d *discovery) setKubernetes() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.isKubernetes = true
}

func notKubernetes() error {
	return serverf(ReasonGarbage, "does not answer like a Kubernetes API server; check its URL")
}
