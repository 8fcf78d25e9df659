package kubetest

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"k8s.io/client-go/rest"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// startTimeout is generous: five seconds are usual.
const startTimeout = 3 * time.Minute

type binaries struct{ etcd, apiserver, controllers string }

// find looks for the programs. Its error is [os.ErrNotExist] if one has not been built.
func find() (binaries, error) {
	var found binaries
	for name, path := range map[string]*string{"etcd": &found.etcd, "kube-apiserver": &found.apiserver, "kube-controller-manager": &found.controllers} {
		var err error
		if *path, err = processtest.Tool("FLOTILLA_KUBE_BIN", name); err != nil {
			return binaries{}, err
		}
	}
	for _, path := range []string{found.etcd, found.apiserver} {
		if _, err := os.Stat(path); err != nil {
			return binaries{}, err
		}
	}
	return found, nil
}

// launch starts the servers, again with other ports if another process takes one in between.
func launch(ctx context.Context) (*Server, error) {
	programs, err := find()
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		server, err := start(ctx, programs)
		if err == nil || attempt == 3 || !errors.Is(err, processtest.ErrPortTaken) {
			return server, err
		}
	}
}

func start(ctx context.Context, programs binaries) (_ *Server, err error) {
	folder, err := os.MkdirTemp("", "kubetest-")
	if err != nil {
		return nil, err
	}
	server := &Server{folder: folder, binaries: programs, Token: rand.Text()}
	defer func() {
		if err != nil {
			server.stop()
		}
	}()
	ports, err := processtest.FreePorts(ctx, 3)
	if err != nil {
		return nil, err
	}
	if err := server.writeCredentials(); err != nil {
		return nil, err
	}
	store, err := server.startEtcd(ctx, ports[0], ports[1])
	if err != nil {
		return nil, err
	}
	if err := server.startAPI(ctx, store, ports[2]); err != nil {
		return nil, err
	}
	server.objects, err = newObjects(&rest.Config{
		Host:            server.Host,
		BearerToken:     server.Token,
		TLSClientConfig: rest.TLSClientConfig{CAData: []byte(server.CA)},
		QPS:             -1, // no rate limit for tests
	})
	return server, err
}

func (s *Server) writeCredentials() error {
	var err error
	if s.authority, err = newAuthority(); err != nil {
		return err
	}
	s.CA = s.authority.pem
	certificate, key, err := s.authority.server()
	if err != nil {
		return err
	}
	accounts, err := newKey()
	if err != nil {
		return err
	}
	private, err := encodeKey(accounts)
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(accounts.Public())
	if err != nil {
		return err
	}
	for name, text := range map[string]string{
		"ca.pem":         s.CA,
		"server.pem":     certificate,
		"server-key.pem": key,
		"accounts.key":   private,
		"accounts.pub":   encode("PUBLIC KEY", public),
		"tokens.csv":     s.Token + `,administrator,administrator,"system:masters"` + "\n",
	} {
		if err := os.WriteFile(s.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) path(name string) string { return filepath.Join(s.folder, name) }

// startEtcd returns the URL of its clients.
func (s *Server) startEtcd(ctx context.Context, clients, peers int) (string, error) {
	url, peer := "http://127.0.0.1:"+strconv.Itoa(clients), "http://127.0.0.1:"+strconv.Itoa(peers)
	var err error
	s.etcd, err = processtest.Start(ctx, processtest.Command{
		Name:   "etcd",
		Binary: s.binaries.etcd,
		Folder: s.folder,
		Args: []string{
			"--data-dir", s.path("etcd"),
			"--listen-client-urls", url,
			"--advertise-client-urls", url,
			"--listen-peer-urls", peer,
			"--initial-advertise-peer-urls", peer,
			"--initial-cluster", "default=" + peer,
			"--unsafe-no-fsync", // tests need no durability
			"--log-level", "warn",
		},
	})
	if err != nil {
		return "", err
	}
	return url, s.etcd.Ready(ctx, startTimeout, func(ctx context.Context) error {
		return get(ctx, webtest.Client, url+"/health", "")
	})
}

func (s *Server) startAPI(ctx context.Context, store string, port int) error {
	s.Host = "https://127.0.0.1:" + strconv.Itoa(port)
	var err error
	s.apiserver, err = processtest.Start(ctx, processtest.Command{
		Name:   "kube-apiserver",
		Binary: s.binaries.apiserver,
		Folder: s.folder,
		Args: []string{
			"--etcd-servers=" + store,
			"--bind-address=127.0.0.1",
			"--advertise-address=127.0.0.1",
			"--secure-port=" + strconv.Itoa(port),
			"--service-cluster-ip-range=10.0.0.0/24",
			"--tls-cert-file=" + s.path("server.pem"),
			"--tls-private-key-file=" + s.path("server-key.pem"),
			"--client-ca-file=" + s.path("ca.pem"),
			"--token-auth-file=" + s.path("tokens.csv"),
			"--authorization-mode=RBAC",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + s.path("accounts.pub"),
			"--service-account-signing-key-file=" + s.path("accounts.key"),
			"--endpoint-reconciler-type=none",
			"--disable-admission-plugins=ServiceAccount", // only controllers create the default account
		},
	})
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AddCert(s.authority.certificate)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}}
	defer client.CloseIdleConnections()
	return s.apiserver.Ready(ctx, startTimeout, func(ctx context.Context) error {
		return get(ctx, client, s.Host+"/readyz", s.Token)
	})
}

// controllers are the controllers that delete objects and make them healthy.
const controllers = "namespace-controller,garbage-collector-controller,serviceaccount-controller," +
	"root-ca-certificate-publisher-controller,deployment-controller,replicaset-controller," +
	"resourcequota-controller,clusterrole-aggregation-controller"

func (s *Server) startControllers(ctx context.Context) (*processtest.Process, error) {
	config := s.path("kubeconfig")
	if err := os.WriteFile(config, []byte(s.Kubeconfig()), 0o600); err != nil {
		return nil, err
	}
	return processtest.Start(ctx, processtest.Command{
		Name:   "kube-controller-manager",
		Binary: s.binaries.controllers,
		Folder: s.folder,
		Args: []string{
			"--kubeconfig=" + config,
			"--bind-address=127.0.0.1",
			"--secure-port=0",
			"--leader-elect=false",
			"--service-account-private-key-file=" + s.path("accounts.key"),
			"--root-ca-file=" + s.path("ca.pem"),
			"--controllers=" + controllers,
		},
	})
}

func get(ctx context.Context, client *http.Client, url, token string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(response.Body, 1<<10))
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s: %s", url, response.Status, text)
	}
	return nil
}
