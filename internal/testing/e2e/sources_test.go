package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

var (
	gitRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	secrets         = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// sourceController is a stand-in for source-controller with branches, tags and commits only. It keeps an artifact of the newest
// commit of each GitRepository.
type sourceController struct {
	t       *testing.T
	cluster *kubetest.Server
	folder  string // a bare repository
	url     string

	mu        sync.Mutex
	artifacts map[string][]byte // by path
}

func startSourceController(t *testing.T, cluster *kubetest.Server) {
	t.Helper()
	s := &sourceController{t: t, cluster: cluster, folder: t.TempDir(), artifacts: map[string][]byte{}}
	server := httptest.NewServer(s)
	s.url = server.URL
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			s.reconcile(ctx)
			select {
			case <-ctx.Done():
				return
			case <-time.After(time.Second):
			}
		}
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		server.Close()
	})
}

// ServeHTTP serves artifacts.
func (s *sourceController) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	artifact := s.artifacts[r.URL.Path]
	s.mu.Unlock()
	if artifact == nil {
		http.NotFound(w, r)
		return
	}
	_, _ = w.Write(artifact)
}

// reconcile updates each GitRepository. The next round retries errors.
func (s *sourceController) reconcile(ctx context.Context) {
	repositories, err := s.cluster.Client().Resource(gitRepositories).List(ctx, metav1.ListOptions{})
	if err != nil {
		return
	}
	for _, repository := range repositories.Items {
		if err := s.fetchRepository(ctx, &repository); err != nil && ctx.Err() == nil {
			s.setStatus(ctx, gitRepositories, &repository, nil, "False", "GitOperationFailed", err.Error())
		}
	}
	s.reconcileOthers(ctx)
}

func (s *sourceController) fetchRepository(ctx context.Context, repository *unstructured.Unstructured) error {
	address, err := s.addressWithCredentials(ctx, repository)
	if err != nil {
		return err
	}
	name, ref := fmt.Sprint(field(repository, "spec", "ref", "branch")), "refs/heads/"
	if tag, ok := field(repository, "spec", "ref", "tag").(string); ok {
		name, ref = tag, "refs/tags/"
	}
	commit, isPinned := field(repository, "spec", "ref", "commit").(string)
	if !isPinned {
		listed, err := s.git(ctx, "ls-remote", address, ref+name)
		if err != nil {
			return err
		}
		if commit, _, _ = strings.Cut(string(listed), "\t"); commit == "" {
			return fmt.Errorf("there is no %s%s", ref, name)
		}
	}
	revision := name + "@sha1:" + commit
	if field(repository, "status", "artifact", "revision") == revision &&
		field(repository, "status", "observedGeneration") == repository.GetGeneration() {
		return nil
	}
	if _, err := s.git(ctx, "init", "--quiet", "--bare", "."); err != nil {
		return err
	}
	if _, err := s.git(ctx, "fetch", "--quiet", "--depth=1", address, commit); err != nil {
		return err
	}
	return s.storeArtifact(ctx, gitRepositories, repository, commit, revision)
}

// storeArtifact stores the archive of a commit or tree and puts it into the status of a source.
func (s *sourceController) storeArtifact(
	ctx context.Context,
	resource schema.GroupVersionResource,
	source *unstructured.Unstructured,
	treeish, revision string,
) error {
	archive, err := s.git(ctx, "archive", "--format=tar.gz", treeish)
	if err != nil {
		return err
	}
	urlPath := path.Join("/", resource.Resource, source.GetNamespace(), source.GetName(), treeish+".tar.gz")
	s.mu.Lock()
	s.artifacts[urlPath] = archive
	s.mu.Unlock()
	s.setStatus(ctx, resource, source, map[string]any{
		"digest":         fmt.Sprintf("sha256:%x", sha256.Sum256(archive)),
		"lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
		"path":           strings.TrimPrefix(urlPath, "/"),
		"revision":       revision,
		"size":           len(archive),
		"url":            s.url + urlPath,
	}, "True", "Succeeded", "stored artifact for revision '"+revision+"'")
	return nil
}

// addressWithCredentials returns the URL of a repository with the credentials of its Secret, if any.
func (s *sourceController) addressWithCredentials(ctx context.Context, repository *unstructured.Unstructured) (string, error) {
	address, err := url.Parse(fmt.Sprint(field(repository, "spec", "url")))
	if err != nil {
		return "", err
	}
	name, ok := field(repository, "spec", "secretRef", "name").(string)
	if !ok {
		return address.String(), nil
	}
	secret, err := s.cluster.Client().Resource(secrets).Namespace(repository.GetNamespace()).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	text := func(key string) string {
		decoded, _ := base64.StdEncoding.DecodeString(fmt.Sprint(field(secret, "data", key)))
		return string(decoded)
	}
	address.User = url.UserPassword(text("username"), text("password"))
	return address.String(), nil
}

func (s *sourceController) setStatus(
	ctx context.Context,
	resource schema.GroupVersionResource,
	object *unstructured.Unstructured,
	artifact map[string]any,
	ready, reason, message string,
) {
	status := map[string]any{
		"observedGeneration": object.GetGeneration(),
		"conditions": []any{map[string]any{
			"type": "Ready", "status": ready, "reason": reason, "message": message,
			"observedGeneration": object.GetGeneration(), "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
		}},
	}
	if artifact != nil {
		status["artifact"] = artifact
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err == nil {
		// A deleted object needs no status. The next round retries other errors.
		_, _ = s.cluster.Client().Resource(resource).Namespace(object.GetNamespace()).
			Patch(ctx, object.GetName(), types.MergePatchType, patch, metav1.PatchOptions{}, "status")
	}
}

func (s *sourceController) git(ctx context.Context, args ...string) ([]byte, error) {
	return git(ctx, s.folder, args...)
}

// removeGitVariables removes the variables that steer git, because tests may run inside a hook.
func removeGitVariables(environment []string) []string {
	return slices.DeleteFunc(environment, func(variable string) bool { return strings.HasPrefix(variable, "GIT_") })
}

// git runs git without the user's settings.
func git(ctx context.Context, folder string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = folder
	cmd.Env = append(removeGitVariables(os.Environ()), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0",
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@example.com",
		"GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@example.com")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	output, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, stderr.String())
	}
	return output, nil
}
