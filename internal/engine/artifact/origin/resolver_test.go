package origin_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/origin"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/diskcache"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// newChart returns the archive of a chart with the version in its Chart.yaml.
func newChart(t testing.TB, name, version string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(compressed)
	content := fmt.Sprintf("apiVersion: v2\nname: %s\nversion: %s\n", name, version)
	err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name + "/Chart.yaml", Size: int64(len(content)), Mode: 0o644})
	_, wrote := io.WriteString(writer, content)
	if err := errors.Join(err, wrote, writer.Close(), compressed.Close()); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// contentOf returns the name and content of the first file in a stored archive.
func contentOf(t testing.TB, path string) string {
	t.Helper()
	file, err := diskcache.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	reader := tar.NewReader(file)
	header, err := reader.Next()
	if err != nil {
		t.Fatal(err)
	}
	content, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return header.Name + ": " + string(content)
}

func newCache(t testing.TB) *diskcache.Folder {
	t.Helper()
	return diskcache.New(filepath.Join(t.TempDir(), "cache"), diskcache.DefaultMaxSize)
}

func newClient(t testing.TB, credentials git.Credentials) *origin.Resolver {
	t.Helper()
	return origin.NewResolver(origin.ResolverOptions{
		Git: git.NewConnector(git.ConnectorOptions{}), Credentials: credentials, DockerConfig: filepath.Join(t.TempDir(), "config.json"), UserAgent: "test/1",
	})
}

func credentialsByURL(url, username, password string) git.Credentials {
	return git.Credentials{ByURL: []git.URLCredentials{{URL: url, Login: git.Login{Username: username, Password: password}}}}
}

func TestCommitsOfBranchesAndTagsAreFound(t *testing.T) {
	t.Parallel()
	repository := t.TempDir()
	run := func(args ...string) string {
		return strings.TrimSpace(
			gittest.Run(t, repository, "git", append([]string{"-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...),
		)
	}
	run("init", "-q", "-b", "main")
	write := func(name, content string) {
		if err := os.WriteFile(filepath.Join(repository, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.yaml", "a: 1\n")
	run("add", ".")
	run("commit", "-qm", "one")
	first := run("rev-parse", "HEAD")
	run("tag", "-am", "a tag", "v1.0.0")
	run("branch", "v1.0.0-fix")
	write("a.yaml", "a: 2\n")
	run("commit", "-qam", "two")
	second := run("rev-parse", "HEAD")
	run("tag", "v1.1.0")
	run("tag", "v2.0.0-rc.1")

	client := newClient(t, git.Credentials{})
	for _, test := range []struct {
		manifests folder.Manifests
		want      string
	}{
		{folder.Manifests{}, second},
		{folder.Manifests{Branch: "main"}, second},
		{folder.Manifests{Branch: "v1.0.0-fix"}, first},
		{folder.Manifests{Tag: "v1.0.0"}, first},
		{folder.Manifests{Tag: "v1.1.0"}, second},
		{folder.Manifests{Commit: first, Branch: "main"}, first},
	} {
		test.manifests.Storage, test.manifests.Repo = "git", repository
		pin, err := client.Resolve(t.Context(), test.manifests, nil)
		if err != nil || pin != (folder.Pin{Commit: test.want}) {
			t.Errorf("%+v: %v, %v; want %s", test.manifests, pin, err, test.want)
		}
	}
	newest, err := client.Newest(t.Context(), folder.Manifests{Storage: "git", Repo: repository}, nil)
	if err != nil || newest != "v1.1.0" {
		t.Errorf("newest is %q, %v", newest, err)
	}
	_, err = client.Resolve(t.Context(), folder.Manifests{Storage: "git", Repo: repository, Branch: "mian"}, nil)
	if err == nil || !strings.Contains(err.Error(), repository) || !strings.Contains(err.Error(), `did you mean "main"`) {
		t.Errorf("error %v", err)
	}

	path, err := origin.NewStore(client, newCache(t)).
		Fetch(t.Context(), artifact.Artifact{Storage: "git", Repo: repository, Pin: folder.Pin{Commit: first}})
	if err != nil || contentOf(t, path) != "a.yaml: a: 1\n" {
		t.Errorf("fetched %s, %v", path, err)
	}
}

// chartServer is a chart repository that counts requests.
type chartServer struct {
	*httptest.Server
	mutex    sync.Mutex
	requests map[string]int    // by path
	tokens   map[string]string // Authorization header by path
}

func newChartServer(t *testing.T, files map[string]func(http.ResponseWriter, *http.Request)) *chartServer {
	t.Helper()
	s := &chartServer{requests: map[string]int{}, tokens: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mutex.Lock()
		s.requests[r.URL.Path]++
		s.tokens[r.URL.Path] = r.Header.Get("Authorization")
		s.mutex.Unlock()
		if serve, ok := files[r.URL.Path]; ok {
			serve(w, r)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

func serveText(content string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, content) }
}

func TestChartIsFoundAndFetched(t *testing.T) {
	t.Parallel()
	old, archive := newChart(t, "till", "3.2.0"), newChart(t, "till", "3.2.1")
	server := newChartServer(t, map[string]func(http.ResponseWriter, *http.Request){
		"/charts/index.yaml": serveText(
			fmt.Sprintf(`{entries: {till: [{version: 3.2.0, digest: %x, urls: [till-3.2.0.tgz]}, {version: 3.2.1, urls: [till-3.2.1.tgz]},
			{version: 4.0.0-rc.1, urls: [x]}, {version: 4.0.0, digest: %x, urls: [till-4.0.0.tgz]}]}}`, sha256.Sum256(old), sha256.Sum256(old)),
		),
		"/charts/till-3.2.0.tgz": serveText(
			string(old),
		), "/charts/till-3.2.1.tgz": serveText(string(archive)), "/charts/till-4.0.0.tgz": serveText(string(archive)),
	})
	client := newClient(t, credentialsByURL(server.URL+"/charts", "reader", "s3cret"))
	manifests := func(version string) folder.Manifests {
		return folder.Manifests{Storage: "helm", Repo: server.URL + "/charts/", Chart: "till", Version: version}
	}
	for version, want := range map[string]folder.Pin{
		"3.2.0": {Version: "3.2.0", Digest: digestOf(old)},
		"3.x":   {Version: "3.2.1", Digest: digestOf(archive)},
		"":      {Version: "4.0.0", Digest: digestOf(old)},
	} {
		if pin, err := client.Resolve(t.Context(), manifests(version), nil); err != nil || pin != want {
			t.Errorf("%q: %v, %v; want %v", version, pin, err, want)
		}
	}
	if newest, err := client.Newest(t.Context(), manifests("3.x"), nil); err != nil || newest != "4.0.0" {
		t.Errorf("newest is %q, %v", newest, err)
	}
	for version, want := range map[string]string{">5": `none of the 4 versions of chart "till" is ">5"`, "new": `"new" is neither`} {
		if _, err := client.Resolve(t.Context(), manifests(version), nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v", version, err)
		}
	}
	wrong := manifests("")
	wrong.Chart = "tiil"
	if _, err := client.Resolve(t.Context(), wrong, nil); err == nil || !strings.Contains(err.Error(), `did you mean "till"`) {
		t.Errorf("error %v", err)
	}
	cache := filepath.Join(t.TempDir(), "cache")
	store := origin.NewStore(client, diskcache.New(cache, diskcache.DefaultMaxSize))
	wanted := artifact.Artifact{
		Storage: "helm",
		Repo:    server.URL + "/charts/",
		Chart:   "till",
		Pin:     folder.Pin{Version: "3.2.0", Digest: digestOf(old)},
	}
	for range 2 {
		path, err := store.Fetch(t.Context(), wanted)
		if err != nil || !strings.HasPrefix(contentOf(t, path), "till/Chart.yaml: apiVersion: v2\nname: till\nversion: 3.2.0") {
			t.Errorf("fetched %s, %v", path, err)
		}
	}
	if err := os.RemoveAll(cache); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Fetch(t.Context(), wanted); err != nil {
		t.Errorf("without its folder: %v", err)
	}
	// The chart differs from the digest in the index.
	wanted.Pin = folder.Pin{Version: "4.0.0", Digest: digestOf(old)}
	if err := os.RemoveAll(cache); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Fetch(t.Context(), wanted); err == nil || !strings.Contains(err.Error(), "was published again") {
		t.Errorf("other content: %v", err)
	}
	server.mutex.Lock()
	defer server.mutex.Unlock()
	if server.requests["/charts/index.yaml"] != 1 || server.requests["/charts/till-3.2.0.tgz"] != 2 {
		t.Errorf("requests %v", server.requests)
	}
	if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("reader:s3cret")); server.tokens["/charts/till-3.2.0.tgz"] != want {
		t.Errorf("sent %q", server.tokens)
	}
}

func TestCredentialsStayWithTheirServer(t *testing.T) {
	t.Parallel()
	archive := newChart(t, "till", "1.0.0")
	other := newChartServer(
		t,
		map[string]func(http.ResponseWriter, *http.Request){"/till.tgz": serveText(string(archive)), "/moved.tgz": serveText(string(archive))},
	)
	server := newChartServer(t, map[string]func(http.ResponseWriter, *http.Request){
		"/index.yaml": serveText(
			fmt.Sprintf("entries: {till: [{version: 1.0.0, urls: [%q]}, {version: 2.0.0, urls: [moved.tgz]}]}", other.URL+"/till.tgz"),
		),
		"/moved.tgz": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+"/moved.tgz", http.StatusFound)
		},
	})
	credentials := credentialsByURL(server.URL, "reader", "s3cret")
	credentials.Token = "plain" // of the GitOps repository
	for _, version := range []string{"1.0.0", "2.0.0"} {
		manifests := folder.Manifests{Storage: "helm", Repo: server.URL, Chart: "till", Version: version}
		if _, err := newClient(t, credentials).Resolve(t.Context(), manifests, nil); !errors.Is(err, access.ErrDenied) || len(other.requests) > 0 {
			t.Errorf("another server on this machine received %v: %v", other.requests, err)
		}
		if _, err := newClient(t, credentials).Resolve(t.Context(), manifests, []string{server.URL}); !errors.Is(err, access.ErrDenied) ||
			len(other.requests) > 0 {
			t.Errorf("a server outside of the sources received %v: %v", other.requests, err)
		}
		if _, err := newClient(t, credentials).Resolve(t.Context(), manifests, []string{other.URL}); !errors.Is(err, access.ErrDenied) ||
			len(other.requests) > 0 {
			t.Errorf("a repository outside of the sources: %v", err)
		}
	}
	// A server in the credentials of the provider is allowed, but receives no credentials.
	credentials.ByURL = append(credentials.ByURL, credentialsByURL(other.URL, "platform", "s3cret").ByURL...)
	client := newClient(t, credentials)
	for _, version := range []string{"1.0.0", "2.0.0"} {
		if _, err := client.Resolve(t.Context(), folder.Manifests{Storage: "helm", Repo: server.URL, Chart: "till", Version: version}, nil); err != nil {
			t.Error(err)
		}
	}
	if len(other.tokens) != 2 || other.tokens["/till.tgz"]+other.tokens["/moved.tgz"] != "" || server.tokens["/moved.tgz"] == "" {
		t.Errorf("sent to the other server %q, to its own %q", other.tokens, server.tokens)
	}
}

func TestUnreachableRepositoryIsRequestedOnceAndNamed(t *testing.T) {
	t.Parallel()
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		requests.Add(1)
		http.Error(w, "s3cret is not known", http.StatusBadGateway)
	}))
	defer server.Close()
	client := newClient(t, credentialsByURL(server.URL, "reader", "s3cret"))
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() {
			_, err := client.Resolve(t.Context(), folder.Manifests{Storage: "helm", Repo: server.URL, Chart: fmt.Sprint("chart-", i%2)}, nil)
			if !errors.Is(err, git.ErrUnreachable) || !strings.Contains(err.Error(), server.URL) || strings.Contains(err.Error(), "s3cret") ||
				!strings.HasSuffix(err.Error(), "; try again") {
				t.Errorf("error %v", err)
			}
		})
	}
	group.Wait()
	if requests.Load() != 1 {
		t.Errorf("%d requests, want 1", requests.Load())
	}
	for _, manifests := range []folder.Manifests{
		{Storage: "helm", Repo: "http://127.0.0.1:1", Chart: "till"}, {Storage: "git", Repo: "http://127.0.0.1:1/a.git"},
		{Storage: "oci", Repo: "oci://127.0.0.1:1/a"},
	} {
		if _, err := newClient(t, git.Credentials{}).Resolve(t.Context(), manifests, nil); !errors.Is(err, git.ErrUnreachable) {
			t.Errorf("%s: %v", manifests.Storage, err)
		}
	}
}

func TestInvalidAnswersOfARepositoryAreErrors(t *testing.T) {
	t.Parallel()
	server := newChartServer(t, map[string]func(http.ResponseWriter, *http.Request){
		"/yaml/index.yaml":  serveText("entries: ["),
		"/file/index.yaml":  serveText(`entries: {till: [{version: 1.0.0, urls: ["file:///etc/passwd"]}]}`),
		"/none/index.yaml":  serveText(`entries: {till: [{version: 1.0.0}]}`),
		"/loop/index.yaml":  func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) },
		"/login/index.yaml": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"/shown/index.yaml": serveText(`entries: {till: [{version: "1.0.0\u001b", digest: ` + strings.Repeat("a", 64) + `, urls: [a]}]}`),
		"/large/index.yaml": func(w http.ResponseWriter, _ *http.Request) {
			for range 65 {
				_, _ = w.Write(make([]byte, 1<<20))
			}
		},
	})
	client := newClient(t, git.Credentials{})
	for path, want := range map[string]string{
		"yaml": "index.yaml cannot be read", "file": "not a URL with a host", "none": "has no URL", "loop": "redirects more than", "login": "git.credentials",
		"shown": "not shown", "large": "more than", "missing": "404",
	} {
		_, err := client.Resolve(
			t.Context(),
			folder.Manifests{Storage: "helm", Repo: server.URL + "/" + path, Chart: "till", Version: map[string]string{"shown": "1.0.0\x1b"}[path]},
			nil,
		)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", path, err, want)
		}
	}
}

func TestCompressedIndexIsBounded(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		compressed := gzip.NewWriter(w)
		_, err := compressed.Write(bytes.Repeat([]byte("#\n"), 17<<20))
		if err = errors.Join(err, compressed.Close()); err != nil {
			t.Log(err) // the client has disconnected
		}
	}))
	t.Cleanup(server.Close)
	manifests := folder.Manifests{Storage: "helm", Repo: server.URL, Chart: "till", Version: "1.0.0"}
	if _, err := newClient(t, git.Credentials{}).Resolve(t.Context(), manifests, nil); !errors.Is(err, git.ErrTooLarge) {
		t.Errorf("an index of 34 MiB: %v", err)
	}
}
