package e2e_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// teamOnFlux is a cluster with a team. Its members have the role edit in the namespace team, and `flux install` has extended
// that role to Flux' objects.
const teamOnFlux = `
{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: team}}
---
{apiVersion: v1, kind: Namespace, metadata: {name: other}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: flux-edit, labels: {rbac.authorization.k8s.io/aggregate-to-edit: "true", rbac.authorization.k8s.io/aggregate-to-admin: "true"}}
rules: [{apiGroups: [kustomize.toolkit.fluxcd.io, source.toolkit.fluxcd.io], resources: ["*"], verbs: [create, delete, patch, update]}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: members, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: edit}
subjects: [{kind: User, name: member}, {kind: ServiceAccount, name: deployer, namespace: team}]
---
{apiVersion: v1, kind: ServiceAccount, metadata: {name: deployer, namespace: team}}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: files, namespace: team}
spec: {url: "https://git.example.com/team", interval: 1h}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: files, namespace: other}
spec: {url: "https://git.example.com/other", interval: 1h}
`

const greetingConfigMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: team}}\n"

// escape makes the member an administrator of the cluster.
const escape = `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: escaped}, ` +
	`roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin}, subjects: [{kind: User, name: member}]}` + "\n"

// TestFluxConfinesATeam shows that the real kustomize-controller refuses escapes of a team's member with the arguments from
// Flotilla, and allows them without.
func TestFluxConfinesATeam(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts a real agent: `make e2e` builds it and runs it")
	}
	t.Parallel()
	bed := &testbed{scenario: "confined team"}
	bed.step(t, "flux", "Kubernetes API started", func() {
		bed.cluster = kubetest.StartAnother(t, kubetest.Options{Agents: true, Controllers: true})
	})
	base := t.TempDir() // kustomize accepts a remote base only from a repository, not as one file over http
	writeFile(t, base, "kustomization.yaml", "resources: [all.yaml]\n")
	writeFile(t, base, "all.yaml", fmt.Sprintf(greetingConfigMap, "remote"))
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"}, {"add", "."},
		{"commit", "--quiet", "--message=base"},
	} {
		if _, err := git(t.Context(), base, args...); err != nil {
			t.Fatal(err)
		}
	}
	responses := map[string][]byte{}
	server := httptest.NewServer(http.HandlerFunc(func(bed http.ResponseWriter, r *http.Request) { _, _ = bed.Write(responses[r.URL.Path]) }))
	t.Cleanup(server.Close)
	archive := packFiles(t, map[string]string{
		"escape/all.yaml": escape, "own/all.yaml": fmt.Sprintf(greetingConfigMap, "own"),
		"cross/all.yaml":            fmt.Sprintf(greetingConfigMap, "cross"),
		"remote/kustomization.yaml": "resources: [\"file://" + base + "?ref=main\"]\n",
	})
	responses["/files.tar.gz"] = archive
	bed.cluster.Apply(t, teamOnFlux)
	for _, namespace := range []string{"team", "other"} {
		bed.cluster.SetStatus(t, bed.cluster.Get(t, "source.toolkit.fluxcd.io/v1", "GitRepository", namespace, "files"), map[string]any{
			"artifact": map[string]any{
				"digest": fmt.Sprintf("sha256:%x", sha256.Sum256(archive)), "size": int64(len(archive)), "url": server.URL + "/files.tar.gz",
				"path": "files.tar.gz", "revision": "main@sha1:" + strings.Repeat("0", 40), "lastUpdateTime": time.Now().UTC().Format(time.RFC3339),
			},
			"conditions": []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Succeeded", "message": "", "lastTransitionTime": time.Now().UTC().Format(time.RFC3339),
			}},
		})
	}
	member := newClient(t, bed.cluster, "member")
	for name, spec := range map[string]string{
		"escape": `sourceRef: {kind: GitRepository, name: files}`,
		"own":    `serviceAccountName: deployer, sourceRef: {kind: GitRepository, name: files}`,
		"remote": `serviceAccountName: deployer, sourceRef: {kind: GitRepository, name: files}`,
		"cross":  `serviceAccountName: deployer, sourceRef: {kind: GitRepository, name: files, namespace: other}`,
	} {
		object := &unstructured.Unstructured{}
		parseObject(t, fmt.Sprintf(`{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: %[1]s, namespace: team}, `+
			`spec: {interval: 5s, prune: false, path: ./%[1]s, %[2]s}}`, name, spec), object)
		eventually(t, func() error { // Kubernetes first aggregates the role
			_, err := member.Resource(kustomizations).Namespace("team").Create(t.Context(), object, metav1.CreateOptions{})
			return err
		})
	}
	deployment := &unstructured.Unstructured{Object: map[string]any{}}
	parseObject(t, `{metadata: {name: kustomize-controller}, spec: {template: {spec: {containers: [{name: manager}]}}}}`, deployment)
	confinementArguments := reconciler.Named("flux").Agent.Confinement.Missing(deployment)
	for _, test := range []struct {
		name      string
		arguments []string
		want      map[string]string // part of each Kustomization's conditions
	}{
		{"with the arguments", confinementArguments, map[string]string{
			"own": "Applied revision", "escape": "system:serviceaccount:team:kustomize-controller", "cross": "cross-namespace references have been blocked",
			"remote": "BuildFailed",
		}},
		{"without them", nil, map[string]string{
			"own": "Applied revision", "escape": "Applied revision", "cross": "Applied revision", "remote": "Applied revision",
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			bed.step(t, "flux", test.name, func() {
				startAgent(t, bed.cluster, "kustomize-controller", "kustomize-controller", append([]string{
					"--metrics-addr", "127.0.0.1:0", "--health-addr", "127.0.0.1:0", "--enable-leader-election=false", "--watch-all-namespaces=true",
				}, test.arguments...))
				for name, want := range test.want {
					eventually(t, func() error {
						kustomization := bed.cluster.Get(t, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", "team", name)
						conditions := fmt.Sprint(field(kustomization, "status", "conditions"))
						if !strings.Contains(conditions, want) {
							return fmt.Errorf("the conditions of %s are %s, want %q", name, conditions, want)
						}
						return nil
					})
				}
			})
			for name, want := range test.want {
				isApplied := want == "Applied revision"
				object := bed.cluster.Get(t, "v1", "ConfigMap", "team", name)
				if name == "escape" {
					object = bed.cluster.Get(t, "rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "", "escaped")
				}
				if (object != nil) != isApplied {
					t.Errorf("applied object of %s: got %t, want %t", name, object != nil, isApplied)
				}
			}
		})
	}
}

// newClient returns a client with the rights of a user.
func newClient(t *testing.T, cluster *kubetest.Server, user string) dynamic.Interface {
	t.Helper()
	certificate, key := cluster.ClientCertificate(t, user)
	client, err := dynamic.NewForConfig(&rest.Config{Host: cluster.Host, TLSClientConfig: rest.TLSClientConfig{
		CAData: []byte(cluster.CA), CertData: []byte(certificate), KeyData: []byte(key),
	}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// packFiles returns an artifact as source-controller serves it.
func packFiles(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var buffer bytes.Buffer
	compressed := gzip.NewWriter(&buffer)
	writer := tar.NewWriter(compressed)
	for name, text := range files {
		err := writer.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(text)), Mode: 0o644})
		if err == nil {
			_, err = writer.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	return buffer.Bytes()
}

func writeFile(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func parseObject(t *testing.T, text string, into *unstructured.Unstructured) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &into.Object); err != nil {
		t.Fatal(err)
	}
}
