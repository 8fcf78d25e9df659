package provider_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// encryptedText returns a file by sops or kubeseal with Secret "db" of namespace "shop".
func encryptedText(t *testing.T, name string) string {
	t.Helper()
	return readFile(t, filepath.Join("..", "engine", "encrypted", "testdata", name))
}

// shopFleet has the workload "web" in the namespaces "shop" and "cms", on a cluster type with Flux and one with Argo CD. flux
// has further attributes of the first.
func shopFleet(flux map[string]any, containers ...any) map[string]any {
	edge := map[string]any{"name": "edge", "reconciler": "flux"}
	for key, value := range flux {
		edge[key] = value
	}
	return map[string]any{
		"cluster_types": []any{edge, map[string]any{"name": "store", "reconciler": "argocd"}},
		"workloads": []any{map[string]any{"name": "web", "workspace": "team", "deployment_targets": map[string]any{
			"live": map[string]any{
				"environment": "dev",
				"namespace":   "shop",
				"manifests":   map[string]any{"repo": "https://git.example.com/app", "branch": "main"},
			},
			"cms": map[string]any{
				"environment": "dev",
				"namespace":   "cms",
				"manifests":   map[string]any{"repo": "https://git.example.com/app", "branch": "main"},
			},
		}}},
		"target_policies":   []any{policy("all", map[string]any{}, map[string]any{})},
		"config_containers": containers,
	}
}

func encryptedContainer(name string, labels map[string]any, files ...any) map[string]any {
	return map[string]any{"name": name, "labels": labels, "encrypted": files}
}

func TestUnusableEncryptedFilesFailThePlanAllAtOnce(t *testing.T) {
	t.Parallel()
	url := bare(t)
	live := map[string]any{"workload": "web", "deployment-target": "web-live"}
	_, diags := providertest.New(startProvider).Apply(t.Context(), assigned(url, fleetOf(shopFleet(nil,
		encryptedContainer("sops", live, encryptedText(t, "sops.yaml")),
		encryptedContainer("sealed", map[string]any{"deployment-target": "web-cms"}, encryptedText(t, "sealed.yaml")),
	)), nil))
	for _, want := range []string{
		`config_containers["sops"].encrypted[0]: is encrypted with SOPS, but reaches cluster type "edge", whose agent has no key for it: set the cluster type's decryption`,
		`config_containers["sops"].encrypted[0]: is encrypted with SOPS, but reaches cluster type "store": Argo CD decrypts nothing without a plugin; give a SealedSecret there, or references to a store, in secrets`,
		`config_containers["sealed"].encrypted[0]: is for namespace "shop", but reaches deployment target "web-cms" on "edge" in namespace "cms", deployment target "web-cms" on "store" in namespace "cms": ` +
			`encrypt a file for each namespace, or give the deployment targets this one`,
	} {
		if count := strings.Count(diags.String(), want); count != 1 {
			t.Errorf("the diagnostics contain %[2]q %[1]d times: %[3]s", count, want, diags)
		}
	}
	if _, err := os.Stat(url); err == nil {
		t.Error("the apply created the repository")
	}
}

func TestUnencryptedFilesFailThePlanWithoutTheirContent(t *testing.T) {
	t.Parallel()
	_, diags := providertest.New(startProvider).Plan(t.Context(), assigned(bare(t), fleetOf(shopFleet(nil,
		encryptedContainer("plain", nil, "apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData: {PASSWORD: canary}"),
		encryptedContainer("partly", nil, strings.Replace(encryptedText(t, "sops.yaml"), `EMPTY: ""`, "EMPTY: canary", 1)),
		encryptedContainer("whole", nil, encryptedText(t, "whole.yaml")),
	)), nil))
	for _, want := range []string{
		`config_containers["plain"].encrypted[0]: is a Secret that is not encrypted: sops is missing`, `config_containers["partly"].encrypted[0]: stringData["EMPTY"] is not encrypted`,
		`config_containers["whole"].encrypted[0]: the whole file is encrypted, so that its name and namespace cannot be read: encrypt it with --encrypted-regex '^(data|stringData)$'`,
	} {
		if !strings.Contains(diags.String(), want) {
			t.Errorf("the errors lack %q: %s", want, diags)
		}
	}
	if strings.Contains(diags.String(), "canary") {
		t.Errorf("the errors contain a secret: %s", diags)
	}
}

func TestEncryptedFilesAreWrittenAsTheyAre(t *testing.T) {
	t.Parallel()
	url := bare(t)
	w := providertest.New(startProvider)
	live := func(host string) map[string]any {
		return map[string]any{"deployment-target": "web-live", "cluster-type": host}
	}
	sops, sealed := encryptedText(t, "sops.yaml"), encryptedText(t, "sealed.yaml")
	fleet := func(sops string) providertest.Configuration {
		return assigned(url, fleetOf(shopFleet(map[string]any{"decryption": map[string]any{"secret": "sops-age"}},
			encryptedContainer("sops", live("edge"), sops), encryptedContainer("sealed", live("store"), sealed))), nil)
	}
	apply(t, w, fleet(sops))
	if plan := apply(t, w, fleet(sops)); !plan.Empty() {
		t.Errorf("the second plan has %q", linesOf(plan))
	}
	readWritten := func(host string) string {
		return git(t, url, "show", "dev:clusters/all/"+host+"/web-live/encrypted-db.yaml")
	}
	if readWritten("edge") != strings.TrimSpace(sops) && readWritten("edge") != sops ||
		readWritten("store") != strings.TrimSpace(sealed) && readWritten("store") != sealed {
		t.Errorf("the written files differ:\n%s\n%s", readWritten("edge"), readWritten("store"))
	}
	if files := git(t, url, "ls-tree", "-r", "--name-only", "dev"); strings.Count(files, "encrypted-") != 2 {
		t.Errorf("the files are\n%s", files)
	}
	// The plan names a changed password, but hides its value.
	other := strings.Replace(sops, "data:vRk6", "data:vRk7", 1)
	plan := apply(t, w, fleet(other))
	want := []string{
		countLine(changes.Counts{Hosts: 1, Changed: 1, Total: 4}),
		fileLine("encrypted-db.yaml", "stringData.PASSWORD", "edge/web-live", causeBy(changes.ByContainer, "sops")),
	}
	if other == sops || !slices.Equal(linesOf(plan), want) {
		t.Errorf("the plan has %q, want %q", linesOf(plan), want)
	}
	apply(t, w, assigned(url, fleetOf(shopFleet(nil)), nil))
	if files := git(t, url, "ls-tree", "-r", "--name-only", "dev"); strings.Contains(files, "encrypted-") {
		t.Errorf("the files are\n%s", files)
	}
}
