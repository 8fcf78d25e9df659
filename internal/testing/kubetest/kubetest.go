// Package kubetest gives tests a real Kubernetes API: etcd and kube-apiserver,
// and kube-controller-manager when asked, built by `make test` from the modules
// tools/etcd and tools/kubernetes; one of each per test binary, on loopback
// ports of their own. No node runs: a pod that is created stays pending.
//
// A package that uses it hands its tests to [Main], which stops the servers:
//
//	func TestMain(m *testing.M) { os.Exit(kubetest.Main(m.Run)) }
//
//	func TestReport(t *testing.T) {
//		server := kubetest.Start(t, kubetest.Options{Agents: true})
//		server.Restore(t, recorded)
//		...
//	}
package kubetest

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"

	"k8s.io/client-go/dynamic"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// Options are additions to the API.
type Options struct {
	// Controllers runs kube-controller-manager, too: without it no namespace
	// ever ends, and no Deployment gets its replicas.
	Controllers bool

	// Agents has the API know the kinds of Flux, Argo CD and Rancher Fleet.
	Agents bool

	// Secrets has the API know the kinds of External Secrets Operator, Secrets Store CSI Driver and SealedSecrets.
	Secrets bool
}

// Server is a running Kubernetes API. Its methods may be called from parallel
// tests.
type Server struct {
	// Host is the URL of the API, without a trailing slash.
	Host string

	// CA is the certificate of the authority that signed the server's, as PEM.
	CA string

	// Token is a bearer token of an administrator.
	Token string

	authority *authority
	folder    string
	binaries  binaries
	etcd      *processtest.Process
	apiserver *processtest.Process
	objects   *objects

	controllers started
	agents      started
	secrets     started
}

// started is started by the first test that needs it.
type started struct {
	once    sync.Once
	process *processtest.Process
	err     error
}

// shared is the server of this test binary. It is package state because tests of a binary share no other state, and a server per
// test costs seconds.
var shared struct {
	once    sync.Once
	managed bool
	server  *Server
	err     error
}

// Main runs the tests, stops the servers, and returns the exit code for os.Exit. A package that also starts Gitea passes a
// function that calls giteatest.Main.
func Main(run func() int) int {
	shared.managed = true
	defer func() {
		if shared.server != nil {
			shared.server.stop()
		}
	}()
	return run()
}

// Start returns the server of this test binary, and starts it when called for
// the first time: about five seconds. With -short, and where its programs have
// not been built, the test is skipped. The environment variable
// FLOTILLA_KUBE_BIN names the folder of the programs when it is not .tools/bin.
func Start(t testing.TB, options Options) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Kubernetes API, which -short leaves out")
	}
	if !shared.managed {
		t.Fatal("kubetest: nothing would stop the servers: TestMain has to call kubetest.Main")
	}
	// The servers outlive the test that happens to start them.
	ctx := context.WithoutCancel(t.Context())
	shared.once.Do(func() { shared.server, shared.err = launch(ctx) })
	check(t, shared.err)
	server := shared.server
	if options.Agents {
		server.agents.once.Do(func() { server.agents.err = server.define(ctx, Definitions) })
		check(t, server.agents.err)
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

// StartAnother returns a server for one test, for tests about several clusters or about an empty one.
func StartAnother(t testing.TB, options Options) *Server {
	t.Helper()
	if testing.Short() {
		t.Skip("needs a Kubernetes API, which -short leaves out")
	}
	ctx := context.WithoutCancel(t.Context()) // code that ends with the test may still need it
	server, err := launch(ctx)
	check(t, err)
	t.Cleanup(server.stop)
	if options.Agents {
		check(t, server.define(ctx, Definitions))
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

// check skips the test where a program has not been built, and fails it where
// one does not run.
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

// Kubeconfig is the text of a kubeconfig with one context, "kubetest", of an
// administrator.
func (s *Server) Kubeconfig() string { return kubeconfig(s.Host, s.CA, s.Token) }

// ClientCertificate returns a client certificate and its key, as PEM, of a user in these groups; administrators are in
// "system:masters".
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
