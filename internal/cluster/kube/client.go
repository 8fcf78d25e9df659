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
	// maxAnswer bounds one answer in bytes, uncompressed. Objects are read one after the other, so that much less is
	// in memory.
	maxAnswer = 256 << 20
	// maxRefusal bounds what is read of an answer with an error status.
	maxRefusal = 64 << 10
	// maxTries is how many times a busy server is asked.
	maxTries = 4
	// maxWait is the longest wait before it is asked again.
	maxWait = 2 * time.Second
)

// Client asks one cluster. It may be used by several goroutines.
type Client struct {
	server string // URL, without a slash at the end
	http   *http.Client
	close  func()
	// scrubber removes the secrets of the cluster from errors, so that exported methods return none.
	scrubber func() secret.Scrubber

	mu           sync.Mutex
	versions     map[Kind]string // that were served
	isKubernetes bool            // it has answered as only Kubernetes does
	// resources are those of the group versions that were read so far, by kind.
	resources map[string]map[string]Resource
	// discovered is how many bytes were read about kinds.
	discovered int64
}

// get sends a GET request for a list. The caller closes the body of the answer. A 404 for a whole kind is errNoKind, a 404 for
// an object errNoObject, an outdated continue token errExpired.
func (c *Client) get(ctx context.Context, path string, kind Kind) (*http.Response, error) {
	response, answer, err := c.exchange(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	if answer != nil {
		return nil, c.refused(response, *answer, "list", kind)
	}
	return response, nil
}

// exchange sends a request, and sends it again where the server is busy. For an answer with an error status, answer is
// its body; otherwise answer is nil, and the caller closes the body of the response.
func (c *Client) exchange(
	ctx context.Context,
	method, path, contentType string,
	body []byte,
) (response *http.Response, answer *metav1.Status, err error) {
	for try := 1; ; try++ {
		request, err := http.NewRequestWithContext(ctx, method, c.server+path, bytes.NewReader(body))
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
		response, err := c.http.Do(request)
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

func (c *Client) refused(response *http.Response, answer metav1.Status, verb string, kind Kind) error {
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

// finish reads the rest of an answer, such as a line break, so that its connection can be used again.
func finish(response *http.Response) {
	_, _ = io.CopyN(io.Discard, response.Body, maxRefusal)
	_ = response.Body.Close()
}

// notFoundPage is what an API server answers for a path that it does not serve.
const notFoundPage = "404 page not found"

// readStatus reads the body of an answer with an error status. A body that is no Status becomes the message.
func readStatus(response *http.Response) metav1.Status {
	var answer metav1.Status
	text, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // the code says enough
	if json.Unmarshal(text, &answer) != nil || answer.Kind != "Status" {
		answer = metav1.Status{Message: string(bytes.TrimSpace(text))}
	}
	return answer
}

// waitFor is how long to wait before a busy server is asked again.
func waitFor(response *http.Response, try int) time.Duration {
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds >= 0 {
		return min(time.Duration(seconds)*time.Second, maxWait)
	}
	return min(100*time.Millisecond<<try, maxWait)
}

// withoutSecrets is an error as the exported methods return it. A context's error is returned as it is.
func (c *Client) withoutSecrets(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return scrubbed(err, c.scrubber)
}

// ServerVersion is the version of the cluster's API server, such as "v1.31.2".
func (c *Client) ServerVersion(ctx context.Context) (string, error) {
	var answer version.Info
	err := c.getJSON(ctx, "/version", Kind{Resource: "the version"}, &answer)
	switch {
	case err == errNoKind || err == errNoObject || err == errExpired: //nolint:errorlint // made here, never wrapped
		err = notKubernetes()
	case err == nil && (answer.GitVersion == "" || !isName(answer.GitVersion)):
		err = notKubernetes()
	}
	if err != nil {
		return "", c.withoutSecrets(err)
	}
	c.setKubernetes()
	return answer.GitVersion, nil
}

// checkKubernetes makes sure that a 404 comes from a cluster without the kind, and not from a server that is no API server.
func (c *Client) checkKubernetes(ctx context.Context) error {
	c.mu.Lock()
	known := c.isKubernetes
	c.mu.Unlock()
	if known {
		return nil
	}
	_, err := c.ServerVersion(ctx)
	if ReasonOf(err) == ReasonForbidden { // only Kubernetes' access control answers so
		c.setKubernetes()
		return nil
	}
	return err
}

func (c *Client) setKubernetes() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.isKubernetes = true
}

func notKubernetes() error {
	return serverf(ReasonGarbage, "does not answer like a Kubernetes API server; check its URL")
}
