package kube_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// requestToken requests a token from a cluster.
func requestToken(t *testing.T, cluster kube.Cluster, wanted kube.TokenRequest) (token kube.Token, err error) {
	t.Helper()
	err = withClient(t, cluster, func(ctx context.Context, c *kube.ClusterClient) (err error) {
		token, err = c.RequestToken(ctx, wanted)
		return err
	})
	return token, err
}

func TestATokenOfAServiceAccountSignsIn(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{})
	server.Apply(
		t,
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: kube-token}\n---\napiVersion: v1\nkind: ServiceAccount\nmetadata: {name: reader, namespace: kube-token}\n",
	)
	administrator := kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, Token: server.Token}
	token, err := requestToken(t, administrator, kube.TokenRequest{Namespace: "kube-token", ServiceAccount: "reader", Duration: 20 * time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if left := time.Until(token.Expires); left < 19*time.Minute || left > 21*time.Minute {
		t.Errorf("the token is valid for %s, want 20m", left)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", token, token, token, token); strings.Contains(text, token.Text) {
		t.Errorf("the printed token contains its text: %s", text)
	}
	listSecrets := func(token string) error {
		return withClient(
			t,
			kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, Token: token},
			func(ctx context.Context, c *kube.ClusterClient) error {
				_, err := c.List(ctx, kube.ResourceKind{Versions: "v1", Resource: "secrets"}, kube.ListOptions{})
				return err
			},
		)
	}
	if err := listSecrets(token.Text); kube.ReasonOf(err) != kube.ReasonForbidden ||
		!strings.Contains(err.Error(), "system:serviceaccount:kube-token:reader") {
		t.Errorf("with the token, got the error %v", err)
	}
	other, err := requestToken(
		t,
		administrator,
		kube.TokenRequest{Namespace: "kube-token", ServiceAccount: "reader", Duration: time.Hour, Audiences: []string{"vault"}},
	)
	if err != nil {
		t.Fatal(err)
	}
	if err := listSecrets(other.Text); kube.ReasonOf(err) != kube.ReasonUnauthorized {
		t.Errorf("with a token for another audience, got the error %v", err)
	}
	certificate, key := server.ClientCertificate(t, "nobody", "nothing")
	nobody := kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, ClientCertificate: certificate, ClientKey: key}
	for name, c := range map[string]struct {
		cluster kube.Cluster
		wanted  kube.TokenRequest
		reason  kube.Reason
		want    string
	}{
		"no account":   {administrator, kube.TokenRequest{Namespace: "kube-token", ServiceAccount: "gone", Duration: time.Hour}, kube.ReasonRefused, "the API server has no service account kube-token/gone"},
		"no namespace": {administrator, kube.TokenRequest{Namespace: "gone", ServiceAccount: "reader", Duration: time.Hour}, kube.ReasonRefused, "the API server has no service account gone/reader"},
		"a minute":     {administrator, kube.TokenRequest{Namespace: "kube-token", ServiceAccount: "reader", Duration: time.Minute}, kube.ReasonRefused, "the API server refuses a token of service account kube-token/reader: "},
		"no right":     {nobody, kube.TokenRequest{Namespace: "kube-token", ServiceAccount: "reader", Duration: time.Hour}, kube.ReasonForbidden, "the API server does not let these credentials create serviceaccounts/token (403 Forbidden): "},
	} {
		if _, err := requestToken(t, c.cluster, c.wanted); kube.ReasonOf(err) != c.reason || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: the error is %v, reason %q; want %q: %q", name, err, kube.ReasonOf(err), c.reason, c.want)
		}
	}
}

// An answer that Kubernetes would not give is an error without the text of the answer.
func TestAnAnswerWithoutATokenIsAnError(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"nothing":      ``,
		"another kind": `{"kind":"Status","status":{"token":"canary-token","expirationTimestamp":"2026-01-01T00:00:00Z"}}`,
		"no token":     `{"kind":"TokenRequest","status":{"expirationTimestamp":"2026-01-01T00:00:00Z"}}`,
		"no time":      `{"kind":"TokenRequest","status":{"token":"canary-token"}}`,
		"no object":    `["canary-token"]`,
		"endless":      `{"kind":"TokenRequest","status":{"token":"` + strings.Repeat("canary-token", 200_000) + `","expirationTimestamp":"2026-01-01T00:00:00Z"}}`,
	} {
		server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/a/serviceaccounts/b/token" {
				t.Errorf("got the request %s %s", r.Method, r.URL.Path)
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			fmt.Fprint(w, answer)
		})
		token, err := requestToken(t, clusterAt(server), kube.TokenRequest{Namespace: "a", ServiceAccount: "b", Duration: time.Hour})
		known := (*kube.RequestError)(nil)
		if !errors.As(err, &known) || token != (kube.Token{}) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: got the token %v and the error %v", name, token, err)
		}
	}
}
