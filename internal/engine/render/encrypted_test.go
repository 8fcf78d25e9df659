package render_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// encryptedFile returns a file by sops or kubeseal for Secret "db" in namespace "shop", from config container "db".
func encryptedFile(t *testing.T, name string) encrypted.File {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "encrypted", "testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	file, err := fleet.ParseEncrypted(string(text))
	if err != nil {
		t.Fatal(err)
	}
	file.Container = "db"
	return file
}

func encryptedPaths(files map[string]string) []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(path string) bool {
		return !strings.Contains(path, "encrypted-") && !strings.HasSuffix(path, "/unknown")
	})
}

// withOwnConfig gives each deployment target a ConfigMap with another name, because they share a namespace.
func withOwnConfig(targets map[string]neighbour) map[string]neighbour {
	for name, target := range targets {
		if target.configAs == nil {
			target.configAs = fleet.ConfigAs{"configmap:" + name}
			targets[name] = target
		}
	}
	return targets
}

func TestEncryptedFilesAreCopiedByteForByte(t *testing.T) {
	sops, sealed := encryptedFile(t, "sops.yaml"), encryptedFile(t, "sealed.yaml")
	other := sealed // the second SealedSecret, in the order of files
	other.Name, other.Text = "db-2", strings.Replace(sealed.Text, "  name: db\n  namespace", "  name: db-2\n  namespace", 1)
	for _, reconciler := range []string{"flux", "argocd", "argocd-hub", "fleet", "config-sync", "zarf"} {
		want := map[string]string{"drone/web-dev/encrypted-db.yaml": sealed.Text, "drone/web-dev/encrypted-db-2.yaml": other.Text}
		inputs := []encrypted.File{sealed, other}
		if reconciler == "flux" {
			inputs[0], want["drone/web-dev/encrypted-db.yaml"] = sops, sops.Text
		}
		files, findings, _ := neighbours{
			reconciler: reconciler, decryption: &fleet.Decryption{Secret: "sops-age"},
			targets: map[string]neighbour{"web": {hosts: []string{"drone"}, namespace: "shop", encrypted: inputs}},
		}.render(t)
		maps.DeleteFunc(files, func(path, _ string) bool { return !strings.Contains(path, "encrypted-") })
		if len(findings) > 0 || !maps.Equal(files, want) {
			t.Errorf("%s: got findings %v, files %s", reconciler, findings, files)
		}
	}
}

func TestAnEncryptedFileOfASharedNamespaceHasOneWriter(t *testing.T) {
	sealed := []encrypted.File{encryptedFile(t, "sealed.yaml")}
	for name, example := range map[string]struct {
		targets map[string]neighbour
		want    []string
	}{
		"the first by name": {map[string]neighbour{
			"api": {hosts: []string{"drone"}, namespace: "shop"},
			"web": {hosts: []string{"drone"}, namespace: "shop", encrypted: sealed},
			"cms": {hosts: []string{"drone"}, namespace: "shop", encrypted: sealed},
		}, []string{"drone/cms-dev/encrypted-db.yaml"}},
		"the cluster type before a cluster": {map[string]neighbour{
			"api": {hosts: []string{"clusters/drone-1"}, namespace: "shop", encrypted: sealed},
			"web": {hosts: []string{"drone"}, namespace: "shop", encrypted: sealed},
		}, []string{"drone/web-dev/encrypted-db.yaml"}},
		"each cluster's own": {map[string]neighbour{
			"web": {hosts: []string{"clusters/drone-1", "clusters/drone-2"}, namespace: "shop", encrypted: sealed},
			"cms": {hosts: []string{"clusters/drone-2"}, namespace: "shop", encrypted: sealed},
		}, []string{"clusters/drone-1/web-dev/encrypted-db.yaml", "clusters/drone-2/cms-dev/encrypted-db.yaml"}},
		"an unknown target before the writer": {map[string]neighbour{
			"api": {hosts: []string{"drone"}, namespace: "shop", isPending: true},
			"web": {hosts: []string{"drone"}, namespace: "shop", encrypted: sealed},
			"zoo": {hosts: []string{"drone"}, namespace: "shop", encrypted: sealed},
		}, []string{"drone/web-dev/unknown"}},
		"an unknown target after the writer": {map[string]neighbour{
			"web": {hosts: []string{"drone"}, namespace: "shop", encrypted: sealed},
			"zoo": {hosts: []string{"drone"}, namespace: "shop", isPending: true},
		}, []string{"drone/web-dev/encrypted-db.yaml"}},
		"an unknown target on the cluster type": {map[string]neighbour{
			"api": {hosts: []string{"clusters/drone-1"}, namespace: "shop", encrypted: sealed},
			"zoo": {hosts: []string{"drone"}, namespace: "shop", isPending: true},
		}, []string{"clusters/drone-1/api-dev/unknown"}},
	} {
		files, findings, _ := neighbours{targets: withOwnConfig(example.targets)}.render(t)
		if got := encryptedPaths(files); len(findings) > 0 || !slices.Equal(got, example.want) {
			t.Errorf("%s: got findings %v, files %q, want files %q", name, findings, got, example.want)
		}
	}
}

func TestUnusableEncryptedFilesAreFindings(t *testing.T) {
	sops, sealed := encryptedFile(t, "sops.yaml"), encryptedFile(t, "sealed.yaml")
	second := sealed
	second.Container, second.Index, second.Text = "other", 1, "# another\n"+sealed.Text
	key := &fleet.Decryption{Secret: "sops-age"}
	target := func(file encrypted.File, namespace string, hosts ...string) neighbour {
		return neighbour{hosts: hosts, namespace: namespace, encrypted: []encrypted.File{file}}
	}
	references := target(sealed, "shop", "drone")
	references.secrets, references.configAs = map[string]fleet.SecretReference{"A": {Store: "vault", Key: "a"}}, fleet.ConfigAs{"secret:db"}
	const prefix = `config_containers["db"].encrypted[0]: `
	for name, example := range map[string]struct {
		neighbours
		want []string
	}{
		"another namespace": {neighbours{targets: map[string]neighbour{"web": target(sealed, "cms", "drone")}}, []string{
			prefix + `is for namespace "shop", but reaches deployment target "web-dev" on "drone" in namespace "cms": encrypt a file for each namespace, or give the deployment targets this one`,
		}},
		"namespaces of their own": {neighbours{targets: map[string]neighbour{"web": target(sealed, "", "clusters/drone-1", "clusters/drone-2")}}, []string{
			prefix + `is for namespace "shop", but reaches deployment target "web-dev" on "clusters/drone-1" in namespace "dev-drone-1-web-dev", ` +
				`deployment target "web-dev" on "clusters/drone-2" in namespace "dev-drone-2-web-dev": encrypt a file for each namespace, or give the deployment targets this one`,
		}},
		"no key": {neighbours{targets: map[string]neighbour{
			"web": target(sops, "shop", "clusters/drone-1", "clusters/drone-2"), "cms": target(sops, "shop", "clusters/drone-1"),
		}}, []string{
			prefix + `is encrypted with SOPS, but reaches cluster type "drone", whose agent has no key for it: set the cluster type's decryption`,
		}},
		"Argo CD": {neighbours{reconciler: "argocd", decryption: key, targets: map[string]neighbour{"web": target(sops, "shop", "drone")}}, []string{
			prefix + `is encrypted with SOPS, but reaches cluster type "drone": Argo CD decrypts nothing without a plugin; give a SealedSecret there, or references to a store, in secrets`,
		}},
		"Zarf": {neighbours{reconciler: "zarf", targets: map[string]neighbour{"web": target(sops, "shop", "drone")}}, []string{
			prefix + `is encrypted with SOPS, but reaches cluster type "drone": Zarf decrypts nothing; give a SealedSecret there, or references to a store, in secrets`,
		}},
		"another file of the Secret": {neighbours{targets: map[string]neighbour{
			"web": target(second, "shop", "drone"), "api": target(sealed, "shop", "drone"),
		}}, []string{
			`config_containers["other"].encrypted[1]: is of Secret "db" in namespace "shop", of which deployment target "api-dev" gets another file, from config container "db", ` +
				`than deployment target "web-dev": give one of the Secrets another name`,
		}},
		"the Secret of references": {neighbours{secretService: "external-secrets", stores: stores, targets: map[string]neighbour{"web": references}}, []string{
			prefix + `is of Secret "db", which the references to secrets of deployment target "web-dev" become: give one of the two another name`,
		}},
		"the Secret of references of another target": {neighbours{secretService: "external-secrets", stores: stores, targets: map[string]neighbour{
			"api": {hosts: []string{"drone"}, namespace: "shop", secrets: references.secrets, configAs: fleet.ConfigAs{"secret:db"}},
			"job": {hosts: []string{"clusters/drone-1"}, namespace: "shop", secrets: references.secrets, configAs: fleet.ConfigAs{"secret:job"}},
			"web": target(sealed, "shop", "clusters/drone-1", "clusters/drone-2"),
		}}, []string{
			prefix + `is of Secret "db", which the references to secrets of deployment target "api-dev" become: give one of the two another name`,
		}},
		"the Secret of references on another cluster": {neighbours{secretService: "external-secrets", stores: stores, targets: map[string]neighbour{
			"api": {hosts: []string{"clusters/drone-1"}, namespace: "shop", secrets: references.secrets, configAs: fleet.ConfigAs{"secret:db"}},
			"web": target(sealed, "shop", "clusters/drone-2"),
		}}, nil},
		"several": {neighbours{targets: map[string]neighbour{
			"web": target(sealed, "cms", "drone"), "api": target(second, "api", "drone"), "job": target(sops, "shop", "drone"),
		}}, []string{
			prefix + `is encrypted with SOPS, but`, prefix + `is for namespace "shop", but`, `config_containers["other"].encrypted[1]: is for namespace "shop", but`,
		}},
	} {
		withOwnConfig(example.targets)
		_, findings, _ := example.render(t)
		if len(findings) != len(example.want) {
			t.Errorf("%s: %v", name, findings)
			continue
		}
		for i, want := range example.want {
			if got := findings[i].String(); !strings.HasPrefix(got, want) || name != "several" && got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
			}
		}
	}
}

// The finding names some of the hosts and the number of the others.
func TestAnEncryptedFileOnManyHostsIsOneFinding(t *testing.T) {
	targets := map[string]neighbour{}
	for _, name := range strings.Split("abcdefghijklmno", "") {
		targets[name] = neighbour{hosts: []string{"drone"}, encrypted: []encrypted.File{encryptedFile(t, "sealed.yaml")}}
	}
	_, findings, _ := neighbours{targets: targets}.render(t)
	if len(findings) != 1 || !strings.Contains(findings[0].Message, " and 5 more: encrypt a file") {
		t.Error(findings)
	}
}

func TestATemplateCannotWriteTheSecretOfAnEncryptedFile(t *testing.T) {
	d := deployment{namespace: "shop", reconciler: "own", templates: []fleet.Template{{
		Type: "reconciler", Name: "own", Manifests: []string{"apiVersion: v1\nkind: Secret\nmetadata:\n  name: db\n  namespace: shop\n"},
	}}}
	templates, subject := d.compile(t)
	subject.Encrypted = []encrypted.File{encryptedFile(t, "sops.yaml")}
	files, err := templates.Render(subject)
	if err != nil {
		t.Fatal(err)
	}
	want := `templates["own"]: reconciler template: reconciler.yaml, line 1: Secret "db" is written twice, first in encrypted-db.yaml, line 1`
	if findings := templates.Check(subject, files); len(findings) != 1 || findings[0].String() != want {
		t.Errorf("got %v, want %s", findings, want)
	}
}

// The status of a SealedSecret reports on its Secret. A file of SOPS is the Secret itself.
func TestSealedSecretsAreRecorded(t *testing.T) {
	templates, subject := deployment{namespace: "shop"}.compile(t)
	sealed, sops := encryptedFile(t, "sealed.yaml"), encryptedFile(t, "sops.yaml")
	sops.Name = "db-2"
	subject.Encrypted = []encrypted.File{sealed, sops}
	files, err := templates.Render(subject)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(templates.Objects(subject, files)); got != "[{Kustomization flux-system shop-hello-dev-ed71c438} {SealedSecret shop db}]" {
		t.Error(got)
	}
}
