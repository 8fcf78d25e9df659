package kube

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
)

// TokenRequest is a request for a token of a service account.
type TokenRequest struct {
	Namespace, ServiceAccount string
	Audiences                 []string // receivers; none means the API server itself
	// Duration is in whole seconds, at least ten minutes. API servers may grant more or less.
	Duration time.Duration
}

// Token is a token of a service account.
type Token struct {
	Text    string
	Expires time.Time
}

// String returns a description without the secret.
func (t Token) String() string {
	return "kube.Token{expires " + t.Expires.UTC().Format(time.RFC3339) + "}"
}

// GoString returns String.
func (t Token) GoString() string { return t.String() }

const maxToken = 1 << 20

// RequestToken requests a token of a service account. A missing account is an error of ReasonRefused, too.
func (c *ClusterClient) RequestToken(ctx context.Context, wanted TokenRequest) (Token, error) {
	token, err := c.requestToken(ctx, wanted)
	return token, c.withoutSecrets(err)
}

func (c *ClusterClient) requestToken(ctx context.Context, wanted TokenRequest) (Token, error) {
	spec := map[string]any{"expirationSeconds": int64(wanted.Duration / time.Second)}
	if len(wanted.Audiences) > 0 {
		spec["audiences"] = wanted.Audiences
	}
	body, err := json.Marshal(map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
	if err != nil {
		return Token{}, failf(ReasonOther, "the request of a token cannot be written as JSON")
	}
	path := pathOf(ResourceKind{Resource: "serviceaccounts"}, "v1", wanted.Namespace, wanted.ServiceAccount) + "/token"
	response, answer, err := c.exchange(ctx, http.MethodPost, path, "application/json", body)
	if err != nil {
		return Token{}, err
	}
	if answer != nil {
		account := wanted.Namespace + "/" + wanted.ServiceAccount
		err = refusedList(response, *answer, "create", ResourceKind{Resource: "serviceaccounts/token"})
		switch {
		case errors.Is(err, errNoObject):
			err = serverf(ReasonRefused, "has no service account %s", account)
		case errors.Is(err, errNoKind):
			err = notKubernetes()
		case response.StatusCode == http.StatusUnprocessableEntity || response.StatusCode == http.StatusBadRequest:
			err = withAnswer(serverf(ReasonRefused, "refuses a token of service account %s", account), answer.Message)
		}
		return Token{}, err
	}
	defer finish(response)
	text, err := io.ReadAll(&bounded.Reader{From: response.Body, Left: maxToken, TooLong: errTooLarge})
	if errors.Is(err, errTooLarge) {
		return Token{}, notKubernetes()
	}
	if err != nil {
		return Token{}, answerError(err, ResourceKind{Resource: "serviceaccounts/token"})
	}
	return readToken(text)
}

func readToken(text []byte) (Token, error) {
	var given struct {
		Kind   string `json:"kind"`
		Status struct {
			Token   string    `json:"token"`
			Expires time.Time `json:"expirationTimestamp"`
		} `json:"status"`
	}
	if json.Unmarshal(text, &given) != nil || given.Kind != "TokenRequest" || given.Status.Token == "" || given.Status.Expires.IsZero() {
		return Token{}, notKubernetes()
	}
	if !isBearerToken(given.Status.Token) {
		return Token{}, serverf(ReasonGarbage, "gives a token that no HTTP header can have")
	}
	return Token{given.Status.Token, given.Status.Expires}, nil
}

const (
	tokenCharacters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~+/="
	longestToken    = 64 << 10
)

// isBearerToken recognizes a token68 of RFC 9110: a line break would start another header.
func isBearerToken(text string) bool {
	return len(text) <= longestToken && strings.Trim(text, tokenCharacters) == ""
}
