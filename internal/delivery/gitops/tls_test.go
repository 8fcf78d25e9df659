package gitops_test

import (
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
)

func TestAGivenCAIsTrusted(t *testing.T) {
	t.Parallel()
	r := newRepository(t, servings[0])
	server := httptest.NewUnstartedServer(backend(t, filepath.Dir(r.directory)))
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	r.remote.URL = server.URL + "/gitops.git"
	edit := devEdit(t, map[string]gitops.FolderEdit{"drone/app": newFolder(t, "a", "1")})

	if _, err := gitops.NewBranchClient(gitops.BranchOptions{}).Apply(context.Background(), r.remote, edit); !errors.Is(err, git.ErrUnreachable) ||
		!strings.Contains(err.Error(), "certificate") {
		t.Errorf("without the CA: %v", err)
	}
	ca := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	transport, err := git.NewHTTPTransport(ca)
	if err != nil {
		t.Fatal(err)
	}
	result, err := gitops.NewBranchClient(gitops.BranchOptions{Git: git.NewConnector(git.ConnectorOptions{Over: transport})}).
		Apply(context.Background(), r.remote, edit)
	if err != nil || !result.Committed {
		t.Errorf("with the CA: %+v, %v", result, err)
	}
	for _, text := range []string{canary, "-----BEGIN CERTIFICATE-----\n" + canary} {
		if _, err := git.NewHTTPTransport(text); err == nil || strings.Contains(err.Error(), canary) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestTheResponseTimeoutEndsASlowRequest(t *testing.T) {
	t.Parallel()
	url := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })) + "/r"
	client := gitops.NewBranchClient(gitops.BranchOptions{Git: git.NewConnector(git.ConnectorOptions{Over: bounded.Transport(50 * time.Millisecond)})})
	if _, err := readOwnerWith(context.Background(), client, git.Remote{IsGitOps: true, URL: url, Branch: "main"}, dev); !errors.Is(
		err,
		git.ErrUnreachable,
	) {
		t.Errorf("err = %v", err)
	}
}
