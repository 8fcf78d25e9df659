// Package kubetest gives tests a real Kubernetes API: etcd, kube-apiserver and, on request, kube-controller-manager,
// built by `make test` from the modules tools/etcd and tools/kubernetes. It starts one of each per test binary, on
// loopback. No node runs: a pod stays pending.
//
// A package's TestMain passes its tests to [Main], which stops the servers.
package kubetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// Options are additions to the API.
type Options struct {
	// Controllers runs kube-controller-manager. Without it, no namespace is deleted and no Deployment gets replicas.
	Controllers bool
	Agents      bool // kinds of Flux, Argo CD and Rancher Fleet, which take two seconds of a processor
	Flux        bool // only Kustomizations
	Secrets     bool // kinds of secret services and SealedSecrets
}

// Server is a running Kubernetes API for parallel tests.
type Server struct {
	Host  string // URL of the API, without a trailing slash
	CA    string // PEM of the authority
	Token string // of an administrator

	authority *authority
	folder    string
	binaries  binaries
	etcd      *processtest.Process
	apiserver *processtest.Process
	objects   *objects

	controllers started
	agents      started
	flux        started
	secrets     started
}

type started struct {
	once    sync.Once
	process *processtest.Process
	err     error
}

// shared is package state because a server per test costs seconds.
var shared struct {
	once    sync.Once
	managed bool
	server  *Server
	err     error
}

// Main runs the tests, stops the servers, and returns the exit code.
func Main(run func() int) int {
	shared.managed = true
	defer func() {
		if shared.server != nil {
			shared.server.stop()
		}
	}()
	return run()
}

// Start returns the server of this test binary, and starts it when called first: about five seconds. With -short, and
// without its programs in .tools/bin or FLOTILLA_KUBE_BIN, it skips the test.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Kubernetes API, which -short leaves out")
	}
	if !shared.managed {
		t.Fatal("kubetest: TestMain must call kubetest.Main, which stops the servers")
	}
	ctx := context.WithoutCancel(t.Context())
	shared.once.Do(func() { shared.server, shared.err = launch(ctx) })
	check(t, shared.err)
	server := shared.server
	if options.Agents {
		server.agents.once.Do(func() { server.agents.err = server.define(ctx, Definitions) })
		check(t, server.agents.err)
	}
	if options.Flux {
		server.flux.once.Do(func() { server.flux.err = server.define(ctx, FluxDefinitions) })
		check(t, server.flux.err)
	}
	if options.Secrets {
		server.secrets.once.Do(func() { server.secrets.err = server.define(ctx, SecretDefinitions) })
		check(t, server.secrets.err)
	}
	if options.Controllers {
		server.controllers.once.Do(func() { server.controllers.process, server.controllers.err = server.startControllers(ctx) })
		check(t, server.controllers.err)
	}
	t.Cleanup(func() {
		if t.Failed() && testing.Verbose() {
			t.Logf("kube-apiserver printed last:\n%s", server.apiserver.Log())
		}
	})
	return server
}

// StartAnother returns a server for one test.
func StartAnother(t testing.TB, options Options) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Kubernetes API, which -short leaves out")
	}
	ctx := context.WithoutCancel(t.Context()) // for cleanup after the test
	server, err := launch(ctx)
	check(t, err)
	t.Cleanup(server.stop)
	if options.Agents {
		check(t, server.define(ctx, Definitions))
	}
	if options.Flux {
		check(t, server.define(ctx, FluxDefinitions))
	}
	if options.Secrets {
		check(t, server.define(ctx, SecretDefinitions))
	}
	if options.Controllers {
		server.controllers.process, err = server.startControllers(ctx)
		check(t, err)
	}
	return server
}

func check(t testing.TB, err error) {
	t.Helper()
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("needs a Kubernetes API: %v; `make tools` builds it", err)
	}
	if err != nil {
		t.Fatalf("kubetest: %v", err)
	}
}

// Client reads and writes every kind.
func (s *Server) Client() dynamic.Interface { return s.objects.client }

// Kubeconfig is an administrator's kubeconfig with one context, "kubetest".
func (s *Server) Kubeconfig() string { return kubeconfig(s.Host, s.CA, s.Token) }

// ClientCertificate returns a certificate and its key, as PEM, of a user in groups; "system:masters" are
// administrators.
func (s *Server) ClientCertificate(t testing.TB, user string, groups ...string) (certificate, key string) {
	t.Helper()
	certificate, key, err := s.authority.client(user, groups)
	if err != nil {
		t.Fatalf("kubetest: %v", err)
	}
	return certificate, key
}

func (s *Server) stop() {
	s.controllers.process.Stop()
	s.apiserver.Stop()
	s.etcd.Stop()
	processtest.RemoveFolder(s.folder)
}

// Permit replaces the permissions of a user by rules of a ClusterRole, and returns the user's certificate and key.
func (s *Server) Permit(t testing.TB, user, rules string) (certificate, key string) {
	t.Helper()
	s.Apply(t, fmt.Sprintf(`
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: %[1]s}
rules: %[2]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: %[1]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, user, rules))
	return s.ClientCertificate(t, user)
}

// PermitIn is like Permit, and adds rules of a Role in a namespace, which it creates.
func (s *Server) PermitIn(t testing.TB, user, rules, namespace, inNamespace string) (certificate, key string) {
	t.Helper()
	s.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[2]s}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: %[1]s, namespace: %[2]s}
rules: %[3]s
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: %[1]s, namespace: %[2]s}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: %[1]s}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %[1]s}]
`, user, namespace, inNamespace))
	return s.Permit(t, user, rules)
}

// AwaitPermission waits until the API grants a user a permission, in a namespace or, with "", in all.
func (s *Server) AwaitPermission(t testing.TB, user, namespace, group, resource, verb string) {
	t.Helper()
	reviews := s.Client().Resource(schema.GroupVersionResource{
		Group: "authorization.k8s.io", Version: "v1", Resource: "subjectaccessreviews",
	})
	review := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": map[string]any{
			"user":               user,
			"resourceAttributes": map[string]any{"namespace": namespace, "group": group, "resource": resource, "verb": verb},
		},
	}}
	for {
		answer, err := reviews.Create(t.Context(), review, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if allowed, _, _ := unstructured.NestedBool(answer.Object, "status", "allowed"); allowed {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}
