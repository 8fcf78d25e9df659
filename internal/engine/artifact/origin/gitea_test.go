package origin_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/origin"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

// pushChart pushes a chart to a registry, like helm push, and returns the digest of its manifest.
func pushChart(t *testing.T, user giteatest.User, repository, tag string, archive []byte) string {
	t.Helper()
	target, err := remote.NewRepository(repository)
	if err != nil {
		t.Fatal(err)
	}
	target.PlainHTTP = true
	target.Client = &auth.Client{
		Credential: auth.StaticCredential(target.Reference.Registry, auth.Credential{Username: user.Name, Password: user.Token}),
	}
	layer := content.NewDescriptorFromBytes("application/vnd.cncf.helm.chart.content.v1.tar+gzip", archive)
	if err := target.Push(t.Context(), layer, bytes.NewReader(archive)); err != nil {
		t.Fatal(err)
	}
	config, err := oras.PushBytes(t.Context(), target, "application/vnd.cncf.helm.config.v1+json", []byte(`{"name":"till","version":"1.0.0"}`))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := oras.PackManifest(t.Context(), target, oras.PackManifestVersion1_1, "", oras.PackManifestOptions{
		ConfigDescriptor: &config, Layers: []ocispec.Descriptor{layer},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Tag(t.Context(), manifest, tag); err != nil {
		t.Fatal(err)
	}
	return string(manifest.Digest)
}

func TestPrivateRegistryAcceptsCredentialsByURLAndFromDocker(t *testing.T) {
	t.Parallel()
	server := giteatest.Start(t)
	user := server.User(t)
	host := strings.TrimPrefix(server.URL, "http://")
	repository := host + "/" + strings.ToLower(user.Name) + "/charts/till"
	archive := newChart(t, "till", "1.2.0")
	want := map[string]string{}
	for _, tag := range []string{"1.2.0", "1.3.0_build.5", "2.0.0-rc.1", "latest", "2024"} {
		want[tag] = pushChart(t, user, repository, tag, newChart(t, "till", tag))
	}
	want["1.2.0"] = pushChart(t, user, repository, "1.2.0", archive)

	var reader struct{ SHA1 string }
	byPassword := giteatest.User{Name: user.Name, Password: user.Password}
	scopes := map[string]any{"name": "reader", "scopes": []string{"read:package"}}
	server.API(t, byPassword, "POST", "/users/"+user.Name+"/tokens", scopes, &reader)
	config := filepath.Join(t.TempDir(), "config.json")
	login := base64.StdEncoding.EncodeToString([]byte(user.Name + ":" + user.Token))
	if err := os.WriteFile(config, []byte(`{"auths":{"`+host+`":{"auth":"`+login+`"}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, client := range map[string]*origin.Resolver{
		"credentials by URL": newClient(t, credentialsByURL(server.URL+"/"+strings.ToLower(user.Name), user.Name, user.Token)),
		"a token with the scope in the guide": newClient(t, git.Credentials{ByURL: []git.URLCredentials{
			{URL: server.URL + "/" + strings.ToLower(user.Name), Login: git.Login{Token: reader.SHA1}},
		}}),
		"credentials of docker": origin.NewResolver(origin.ResolverOptions{Git: git.NewConnector(git.ConnectorOptions{}), DockerConfig: config}),
	} {
		repo := "oci://" + strings.TrimSuffix(repository, "/till")
		for _, test := range []struct {
			manifests folder.Manifests
			tag       string
			version   string
		}{
			{folder.Manifests{Storage: "oci", Repo: repo, Chart: "till"}, "latest", "latest"},
			{folder.Manifests{Storage: "oci", Repo: repo + "/till", Tag: "2024"}, "2024", "2024"},
			{folder.Manifests{Storage: "oci", Repo: repo, Chart: "till", Version: "1.x"}, "1.3.0_build.5", "1.3.0+build.5"},
			{folder.Manifests{Storage: "helm", Repo: repo, Chart: "till"}, "1.3.0_build.5", "1.3.0+build.5"},
			{folder.Manifests{Storage: "helm", Repo: repo, Chart: "till", Version: "1.3.0+build.5"}, "1.3.0_build.5", "1.3.0+build.5"},
			{folder.Manifests{Storage: "helm", Repo: repo, Chart: "till", Version: "1.2.0"}, "1.2.0", "1.2.0"},
		} {
			pin, err := client.Resolve(t.Context(), test.manifests, nil)
			if err != nil || pin != (folder.Pin{Version: test.version, Digest: want[test.tag]}) {
				t.Errorf("%s: %+v: %v, %v; want %s of %s", name, test.manifests, pin, err, test.tag, want[test.tag])
			}
		}
		if newest, err := client.Newest(t.Context(), folder.Manifests{Storage: "helm", Repo: repo, Chart: "till"}, nil); err != nil ||
			newest != "1.3.0_build.5" {
			t.Errorf("%s: newest is %q, %v", name, newest, err)
		}
		_, err := client.Resolve(t.Context(), folder.Manifests{Storage: "oci", Repo: repo + "/till", Tag: "3.0.0"}, nil)
		if err == nil || !strings.Contains(err.Error(), `tag "3.0.0"`) || !strings.Contains(err.Error(), repo) {
			t.Errorf("%s: error %v", name, err)
		}
		path, err := origin.NewStore(client, newCache(t)).Fetch(t.Context(), artifact.Artifact{
			Storage: "helm", Repo: repo, Chart: "till", Pin: folder.Pin{Version: "1.2.0", Digest: want["1.2.0"]},
		})
		if err != nil || !strings.HasPrefix(contentOf(t, path), "till/Chart.yaml: apiVersion: v2\nname: till\nversion: 1.2.0") {
			t.Errorf("%s: fetched %s, %v", name, path, err)
		}
	}
	_, err := newClient(
		t,
		credentialsByURL(server.URL, user.Name, "wrong"),
	).Resolve(t.Context(), folder.Manifests{Storage: "oci", Repo: "oci://" + repository}, nil)
	if err == nil || !strings.Contains(err.Error(), "git.credentials") {
		t.Errorf("with a wrong password: %v", err)
	}
}

func TestChartRepositoryOfGiteaIsRead(t *testing.T) {
	t.Parallel()
	server := giteatest.Start(t)
	user := server.User(t)
	repo := server.URL + "/api/packages/" + user.Name + "/helm"
	archive := newChart(t, "till", "1.2.0")
	for _, content := range [][]byte{archive, newChart(t, "till", "1.3.0-rc.1")} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, repo+"/api/charts", bytes.NewReader(content))
		if err != nil {
			t.Fatal(err)
		}
		request.SetBasicAuth(user.Name, user.Token)
		response, err := webtest.Client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusCreated {
			t.Fatal(response.Status)
		}
	}
	client := newClient(t, credentialsByURL(repo, user.Name, user.Token))
	pin, err := client.Resolve(t.Context(), folder.Manifests{Storage: "helm", Repo: repo, Chart: "till", Version: "1.x"}, nil)
	if err != nil || pin != (folder.Pin{Version: "1.2.0", Digest: digestOf(archive)}) {
		t.Fatalf("%v, %v", pin, err)
	}
	path, err := origin.NewStore(client, newCache(t)).
		Fetch(t.Context(), artifact.Artifact{Storage: "helm", Repo: repo, Chart: "till", Pin: pin})
	if err != nil || !strings.HasPrefix(contentOf(t, path), "till/Chart.yaml") {
		t.Errorf("fetched %s, %v", path, err)
	}
}
