package provider_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/ProtonMail/go-crypto/openpgp"
	"github.com/ProtonMail/go-crypto/openpgp/armor"
	"github.com/ProtonMail/go-crypto/openpgp/packet"
	"github.com/go-git/go-git/v5/plumbing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	gitpackage "github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// trustSources returns a provider block with sources: each is a URL and its keys. A source without keys is unsigned.
func trustSources(sources ...[]string) map[string]any {
	list := make([]any, len(sources))
	for i, source := range sources {
		one := map[string]any{"url": source[0]}
		if len(source) == 1 {
			one["unsigned"] = true
		} else {
			keys := []any{}
			for _, key := range source[1:] {
				keys = append(keys, key)
			}
			one["keys"] = keys
		}
		list[i] = one
	}
	return map[string]any{"verification": map[string]any{"sources": list}}
}

// verifyError reads the final objects of a fleet and returns the error; "" for none.
func verifyError(t *testing.T, block, fleet map[string]any) string {
	t.Helper()
	values, diags := providertest.New(startProvider).
		ReadData(t.Context(), providertest.Configuration{Provider: block}, "flotilla_manifests", map[string]any{"fleet": fleetOf(fleet)})
	if objects := asList(values["objects"]); diags.Err() == nil && len(objects) == 0 {
		t.Errorf("got no objects: %s", diags)
	}
	if diags.Err() == nil {
		return ""
	}
	return strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
}

// requireSigned returns attributes of a cluster type with parameters that require signatures.
func requireSigned(parameters map[string]any) map[string]any {
	return map[string]any{"render": "preview", "parameters": parameters}
}

var gitVerify = map[string]any{
	"git_repository": map[string]any{"verify": map[string]any{"mode": "HEAD", "secretRef": map[string]any{"name": "keys"}}},
}

const greeting = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {of: '%s'}\n"

// signCommits writes a commit for each name into a repository, signed by a private key or unsigned for "". It returns their ids.
func signCommits(t *testing.T, repository, base string, keys map[string]string) map[string]string {
	t.Helper()
	tree := plumbing.NewHash(git(t, repository, "rev-parse", base+"^{tree}"))
	ids := map[string]string{}
	for name, key := range keys {
		pack := gitpackage.NewPack()
		signer, err := gitpackage.NewSigner(key, "")
		if err != nil {
			t.Fatal(err)
		}
		id, err := pack.AddCommit(gitpackage.NewCommit{
			Tree: tree, Author: gitpackage.Signature{Name: "a", Email: "a@example.com"}, Time: time.Now(), Message: name + "\n",
		}, signer)
		if err != nil {
			t.Fatal(err)
		}
		pack.Finish()
		unpack := exec.CommandContext(t.Context(), "git", "unpack-objects", "-q")
		unpack.Dir, unpack.Stdin = repository, pack.Reader()
		if output, err := unpack.CombinedOutput(); err != nil {
			t.Fatal(string(output), err)
		}
		git(t, repository, "update-ref", "refs/heads/"+strings.ReplaceAll(name, " ", "-"), id.String())
		ids[name] = id.String()
	}
	return ids
}

func openPGPKey(t *testing.T) (private, public string) {
	t.Helper()
	entity, err := openpgp.NewEntity("Team", "", "team@example.com", &packet.Config{Algorithm: packet.PubKeyAlgoEdDSA})
	if err != nil {
		t.Fatal(err)
	}
	return armoredKeys(t, entity)
}

func armoredKeys(t *testing.T, entity *openpgp.Entity) (private, public string) {
	t.Helper()
	text := func(kind string, write func(io.Writer) error) string {
		var b bytes.Buffer
		w, err := armor.Encode(&b, kind, nil)
		if err == nil {
			err = write(w)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	return text(
			openpgp.PrivateKeyType,
			func(w io.Writer) error { return entity.SerializePrivateWithoutSigning(w, nil) },
		), text(
			openpgp.PublicKeyType,
			entity.Serialize,
		)
}

func TestCommitsAreVerifiedBeforeTheyAreRendered(t *testing.T) {
	t.Parallel()
	repo, unsigned, repository := serveWorkingCopy(t, map[string]string{"plain/all.yaml": fmt.Sprintf(greeting, t.Name())})
	ofSSH, sshPublic := sshKey(t, "")
	theirs, _ := sshKey(t, "")
	ofPGP, pgpPublic := openPGPKey(t)
	ids := signCommits(t, repository, unsigned, map[string]string{"by ssh": ofSSH, "by OpenPGP": ofPGP, "by another key": theirs})
	tampered := strings.Replace(git(t, repository, "cat-file", "commit", ids["by ssh"]), "by ssh", "by nobody", 1) + "\n"
	command := exec.CommandContext(t.Context(), "git", "hash-object", "-t", "commit", "-w", "--stdin")
	command.Dir, command.Stdin = repository, strings.NewReader(tampered)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatal(string(output), err)
	}
	ids["changed"], ids["unsigned"] = strings.TrimSpace(string(output)), unsigned
	git(t, repository, "update-ref", "refs/heads/changed", ids["changed"])
	ours := trustSources([]string{strings.TrimSuffix(repo, "/.git"), sshPublic, pgpPublic})
	fleetAt := func(id string, clusterType map[string]any) map[string]any {
		return renderedFleet(folder.Pin{}, map[string]any{"repo": repo, "commit": id, "path": "plain"}, nil, clusterType)
	}
	argocd := map[string]any{"render": "preview", "reconciler": "argocd"}
	refusal := func(id string) string { return "commit " + id + " has no signature of a trusted key" }
	for name, test := range map[string]struct {
		commit string
		block  map[string]any
		by     map[string]any
		want   string // "" for none
	}{
		"ssh":                         {"by ssh", ours, requireSigned(gitVerify), ""},
		"OpenPGP":                     {"by OpenPGP", ours, requireSigned(gitVerify), ""},
		"ssh, for Argo CD":            {"by ssh", ours, argocd, ""},
		"no signature":                {"unsigned", ours, requireSigned(gitVerify), refusal(unsigned)},
		"no signature, for Argo CD":   {"unsigned", ours, argocd, refusal(unsigned)},
		"another key":                 {"by another key", ours, requireSigned(gitVerify), refusal(ids["by another key"])},
		"a changed commit":            {"changed", ours, requireSigned(gitVerify), refusal(ids["changed"])},
		"no keys":                     {"by ssh", nil, requireSigned(gitVerify), "the provider has no keys to check it by: list them in verification.sources of the provider"},
		"unsigned, although required": {"by ssh", trustSources([]string{repo}), requireSigned(gitVerify), "have it as unsigned: list the keys that sign it there"},
		"unsigned":                    {"unsigned", trustSources([]string{repo}), argocd, ""},
		"none of the sources":         {"by ssh", trustSources([]string{"https://git.example.com", sshPublic}), argocd, "have none for it: add its URL with the keys that sign it"},
		"the longest source": {
			"by ssh", trustSources([]string{repo[:strings.LastIndex(repo, "/team")]}, []string{repo, pgpPublic}), argocd, refusal(ids["by ssh"]),
		},
		"a tag": {"by ssh", ours, requireSigned(map[string]any{"git_repository": map[string]any{"verify": map[string]any{"mode": "Tag"}}}), `spec.verify.mode can only be "HEAD" to be rendered`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := verifyError(t, test.block, fleetAt(ids[test.commit], test.by)); test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
	// Content in the cache is verified again with the current keys.
	for name, block := range map[string]map[string]any{"none": nil, "unsigned": trustSources([]string{repo})} {
		if got := verifyError(t, block, fleetAt(ids["by another key"], argocd)); got != "" {
			t.Errorf("keys %s: got %q, want none", name, got)
		}
	}
	if got := verifyError(t, ours, fleetAt(ids["by another key"], argocd)); !strings.Contains(got, refusal(ids["by another key"])) {
		t.Errorf("content from the cache is rendered: %q", got)
	}
}

func TestUnsignedObjectsAreNotWritten(t *testing.T) {
	t.Parallel()
	repo, unsigned, repository := serveWorkingCopy(t, map[string]string{"plain/all.yaml": fmt.Sprintf(greeting, t.Name())})
	private, public := sshKey(t, "")
	signed := signCommits(t, repository, unsigned, map[string]string{"signed": private})["signed"]
	with := func(url, id string) providertest.Configuration {
		fleet := renderedFleet(
			folder.Pin{},
			map[string]any{"repo": repo, "commit": id, "path": "plain"},
			nil,
			mergeMaps(requireSigned(gitVerify), map[string]any{"render": "objects"}),
		)
		configuration := assigned(url, fleetOf(fleet), nil)
		configuration.Provider = trustSources([]string{repo, public})
		return configuration
	}
	url, w := bare(t), providertest.New(startProvider)
	if _, diags := w.Apply(t.Context(), with(url, unsigned)); !strings.Contains(fmt.Sprint(diags), "Manifests cannot be rendered") {
		t.Errorf("the diagnostics are %s", diags)
	}
	if _, err := os.Stat(url); err == nil {
		t.Error("the apply creates a repository")
	}
	apply(t, w, with(url, signed))
	if text := fileOnBranch(t, url, tillFolder+"objects/objects.yaml"); !strings.Contains(text, "name: greeting") {
		t.Errorf("got objects %s", text)
	}
	// With unknown keys, nothing is rendered or trusted.
	unknown := with(url, unsigned)
	unknown.Provider = map[string]any{"verification": providertest.Unknown{Then: unknown.Provider["verification"]}}
	if _, diags := w.Apply(t.Context(), unknown); diags.Err() == nil {
		t.Error("an unsigned commit is written with unknown keys")
	}
}

// fleetWithArtifact returns a fleet with a chart or an artifact of a registry, pinned to a digest.
func fleetWithArtifact(t *testing.T, manifests map[string]any, digest string, clusterType map[string]any) map[string]any {
	t.Helper()
	fleet := renderedFleet(folder.Pin{}, manifests, nil, clusterType)
	text := func(name string) string { text, _ := manifests[name].(string); return text }
	pins, err := artifact.Resolved{"till-live": {
		Manifests: folder.Manifests{
			Storage: text("storage"),
			Repo:    text("repo"),
			Chart:   text("chart"),
			Tag:     text("tag"),
			Version: text("version"),
		},
		Pin: folder.Pin{Version: "1.2.1", Digest: digest},
	}}.Encode()
	if err != nil {
		t.Fatal(err)
	}
	fleet["artifacts"] = pins
	return fleet
}

func TestArtifactsAreVerifiedBeforeTheyAreRendered(t *testing.T) {
	t.Parallel()
	registry := newSignedRegistry(t)
	key, public := cosignKey(t)
	theirs, _ := cosignKey(t)
	ours := trustSources([]string{"oci://" + registry.host + "/shop", public})
	verify := map[string]any{"verify": map[string]any{"provider": "cosign", "secretRef": map[string]any{"name": "keys"}}}
	required := requireSigned(map[string]any{"oci_repository": verify, "helm_release": map[string]any{"chart": map[string]any{"spec": verify}}})
	chart := blob{"application/vnd.cncf.helm.chart.content.v1.tar+gzip", chartArchive(t, "till", map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: till\nversion: 1.2.1\n", "templates/all.yaml": fmt.Sprintf(greeting, t.Name()),
	})}
	other, _ := registry.push(t, "shop/other", "", chart, nil, map[string]any{"annotations": map[string]string{"of": "other"}})
	const invalid = "none of the signatures of "
	for name, test := range map[string]struct {
		sign func(name, digest string)
		want string
	}{
		"signed": {func(name, digest string) {
			registry.sign(t, name, digest, payloadFor(digest), signatureOf(t, key, payloadFor(digest)))
		}, ""},
		"signed, in a bundle": {func(name, digest string) { registry.attach(t, name, digest, digest, key) }, ""},
		"signed by another key, too": {func(name, digest string) {
			registry.sign(t, name, digest, payloadFor(digest), signatureOf(t, theirs, payloadFor(digest)))
			registry.attach(t, name, digest, digest, key)
		}, ""},
		"not signed": {func(string, string) {}, "has no signature that cosign made with a key"},
		"by another key": {func(name, digest string) {
			registry.sign(t, name, digest, payloadFor(digest), signatureOf(t, theirs, payloadFor(digest)))
		}, invalid},
		"by another key, in a bundle": {func(name, digest string) { registry.attach(t, name, digest, digest, theirs) }, invalid},
		"for another digest": {func(name, digest string) {
			registry.sign(t, name, digest, payloadFor(other), signatureOf(t, key, payloadFor(other)))
		}, "it is for another digest"},
		"for another digest, in a bundle": {func(name, digest string) { registry.attach(t, name, digest, other, key) }, "it is for another digest"},
		"a changed artifact": {func(name, digest string) {
			registry.sign(t, name, digest, payloadFor(digest), signatureOf(t, key, payloadFor(other)))
		}, invalid},
		"a missing signature": {func(name, digest string) {
			registry.sign(t, name, digest, payloadFor(digest), signatureOf(t, key, payloadFor(digest)))
			maps.DeleteFunc(registry.paths, func(path string, _ blob) bool {
				return strings.HasPrefix(path, "/v2/"+name+"/blobs/") && string(registry.paths[path].data) == string(payloadFor(digest))
			})
		}, "the signature of sha256:"},
	} {
		for _, storage := range []string{"oci", "helm"} {
			t.Run(name+", "+storage, func(t *testing.T) {
				folder := fmt.Sprintf("shop/%x", sha256.Sum256([]byte(name+storage)))[:20]
				digest, _ := registry.push(
					t,
					folder+"/till",
					"1.2.1",
					chart,
					nil,
					map[string]any{"annotations": map[string]string{"of": name + storage}},
				)
				test.sign(folder+"/till", digest)
				manifests := map[string]any{"storage": storage, "repo": "oci://" + registry.host + "/" + folder, "chart": "till", "version": "1.2.1"}
				got := verifyError(t, ours, fleetWithArtifact(t, manifests, digest, required))
				if test.want == "" && got != "" || !strings.Contains(got, test.want) {
					t.Errorf("got %q, want %q", got, test.want)
				}
			})
		}
	}
}

func TestUnsupportedSignaturesAreErrors(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	registry := map[string]any{"storage": "oci", "repo": "oci://registry.example.com/shop", "chart": "till", "version": "1.2.1"}
	with := func(verify map[string]any) map[string]any {
		return fleetWithArtifact(t, registry, digestOfData(nil), requireSigned(map[string]any{"oci_repository": map[string]any{"verify": verify}}))
	}
	_, public := sshKey(t, "")
	for name, test := range map[string]struct {
		block, fleet map[string]any
		want         string
	}{
		"without a key": {nil, with(map[string]any{"provider": "cosign", "matchOIDCIdentity": []any{map[string]any{"issuer": "i", "subject": "s"}}}), "asks for a signature without a key, which Flotilla cannot check"},
		"Notation":      {nil, with(map[string]any{"provider": "notation", "secretRef": map[string]any{"name": "a"}}), `spec.verify.provider can only be "cosign" to be rendered`},
		"no keys":       {nil, with(map[string]any{"provider": "cosign", "secretRef": map[string]any{"name": "a"}}), "the provider has no keys to check it by"},
		"a chart repository": {
			trustSources([]string{charts.url, public}), renderedFleet(pin, tillManifests(charts), nil, map[string]any{"render": "preview"}),
			"charts of chart repositories have no signature that can be checked: publish the chart in a registry (oci://)",
		},
	} {
		if got := verifyError(t, test.block, test.fleet); !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
	unsigned := renderedFleet(pin, tillManifests(charts), nil, map[string]any{"render": "preview"})
	if got := verifyError(t, trustSources([]string{charts.url}), unsigned); got != "" {
		t.Errorf("an unsigned chart repository: got %q, want none", got)
	}
}

func TestWrongVerificationIsAnErrorOfTheProvider(t *testing.T) {
	t.Parallel()
	private, public := sshKey(t, "")
	_, cosign := cosignKey(t)
	source := func(attributes map[string]any) map[string]any { return map[string]any{"sources": []any{attributes}} }
	for want, verification := range map[string]any{
		"sources: is required":                                      map[string]any{},
		"sources: is empty":                                         map[string]any{"sources": []any{}},
		"sources[0].keys: has no key":                               source(map[string]any{"url": "https://git.example.com"}),
		"sources[0].keys: has no key: list the public keys":         source(map[string]any{"url": "https://git.example.com", "keys": []any{}}),
		"sources[0].unsigned: cannot be set together with keys":     source(map[string]any{"url": "https://git.example.com", "keys": []any{public}, "unsigned": true}),
		"sources[0].url: is required":                               source(map[string]any{"keys": []any{public}}),
		"sources[0].keys[1]: the key cannot be read":                source(map[string]any{"url": "https://git.example.com", "keys": []any{public, cosign}}),
		"sources[0].keys[0]: the key cannot be read; it is one":     source(map[string]any{"url": "oci://registry.example.com", "keys": []any{public}}),
		"sources[0].keys[0]: the key cannot be read; it is an Open": source(map[string]any{"url": "https://git.example.com", "keys": []any{private}}),
		"sources[0].url: it is not the beginning of the URL of a":   source(map[string]any{"url": "oci://", "keys": []any{cosign}}),
		"sources[0].url: ":                                          source(map[string]any{"url": "https://u:hunter2@git.example.com", "keys": []any{public}}),
		`sources: there are two for "https://git.example.com"`: map[string]any{"sources": []any{
			map[string]any{"url": "https://git.example.com", "unsigned": true}, map[string]any{"url": "https://git.example.com/", "keys": []any{public}},
		}},
		"did you mean \"keys\"": source(map[string]any{"url": "https://git.example.com", "keyz": []any{public}}),
	} {
		block := map[string]any{"verification": verification}
		_, diags := providertest.New(startProvider).Plan(t.Context(), providertest.Configuration{Provider: block})
		text := strings.Join(strings.Fields(fmt.Sprint(diags)), " ")
		if diags.Err() == nil || !strings.Contains(text, want) || strings.Contains(text, "hunter2") || strings.Contains(text, "PRIVATE KEY") {
			t.Errorf("got %s, want %q", text, want)
		}
	}
}
