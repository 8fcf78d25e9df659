package kube_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

const (
	fleetClusters = 3000
	fleetObjects  = 40 // the assignments of a cluster in the reference fleet
)

// servedFleet has the addresses and certificates of the clusters of the benchmark.
type servedFleet struct {
	Alive, Dead string   // addresses
	Authorities []string // PEM, one for each cluster
}

// serveFleet serves 3,000 clusters on one address until its input ends. Each cluster has its own server name and certificate.
// It answers in 50 ms, or in 3 s if its number ends in 50; it refuses the credentials if its number ends in 75. Another
// address accepts connections and never answers.
func serveFleet(in io.Reader, out io.Writer) error {
	fleet := servedFleet{}
	certificates := make([]tls.Certificate, fleetClusters)
	for i := range certificates {
		certificate, text, err := selfSign(serverName(i))
		if err != nil {
			return err
		}
		certificates[i] = certificate
		fleet.Authorities = append(fleet.Authorities, text)
	}
	alive, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	dead, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	defer dead.Close()
	body := recordedList()
	server := http.Server{
		ErrorLog: log.New(io.Discard, "", 0), ReadHeaderTimeout: time.Minute,
		TLSConfig: &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			i, err := clusterNumber(hello.ServerName)
			return &certificates[i], err
		}},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			i, err := clusterNumber(r.TLS.ServerName)
			if err != nil {
				http.NotFound(w, r)
				return
			}
			time.Sleep(50 * time.Millisecond)
			switch i % 100 {
			case 50:
				time.Sleep(3 * time.Second)
			case 75:
				answerStatus(w, http.StatusUnauthorized, "Unauthorized", "")
				return
			}
			w.Header().Set("Content-Type", "application/json")
			if answer, ok := recordedFacts[r.URL.Path]; ok {
				_, _ = w.Write(answer())
				return
			}
			if !strings.HasSuffix(r.URL.Path, "/"+kustomizations.Resource) {
				_, _ = io.WriteString(w, `{"kind": "List", "apiVersion": "v1", "metadata": {}, "items": []}`)
				return
			}
			_, _ = w.Write(body)
		}),
	}
	fleet.Alive, fleet.Dead = alive.Addr().String(), dead.Addr().String()
	if err := json.NewEncoder(out).Encode(fleet); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = server.Close()
	}()
	if err := server.ServeTLS(alive, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func serverName(i int) string { return fmt.Sprintf("cluster-%04d.example.com", i) }

func clusterNumber(name string) (int, error) {
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "cluster-"), ".")
	i, err := strconv.Atoi(name)
	if err != nil || i < 0 || i >= fleetClusters {
		return 0, fmt.Errorf("no cluster %q", name)
	}
	return i, nil
}

func selfSign(name string) (tls.Certificate, string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotAfter: time.Now().Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, "", err
	}
	return tls.Certificate{
			Certificate: [][]byte{raw},
			PrivateKey:  key,
		}, string(
			pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}),
		), nil
}

// recordedList returns a list of Kustomizations of realistic size, with managed fields.
func recordedList() []byte {
	var items []string
	for i := range fleetObjects {
		items = append(
			items,
			fmt.Sprintf(
				`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"Kustomization","metadata":{"name":"workload-%02d-main","namespace":"flux-system","generation":3,"uid":"5b4e39a0-0000-4000-8000-0000000000%02d","labels":{"flotilla.dev/owner":"prod","flotilla.dev/host":"large","flotilla.dev/deployment-target":"workload-%02d-main"},"managedFields":[%s]},"spec":{"interval":"10m0s","path":"./large/workload","prune":true,"wait":true,"sourceRef":{"kind":"GitRepository","name":"gitops"}},"status":{"observedGeneration":3,"lastAppliedRevision":"main@sha1:0123456789abcdef0123456789abcdef01234567","lastAttemptedRevision":"main@sha1:0123456789abcdef0123456789abcdef01234567","conditions":[{"type":"Ready","status":"True","reason":"ReconciliationSucceeded","message":"Applied revision: main@sha1:0123456789abcdef0123456789abcdef01234567","observedGeneration":3,"lastTransitionTime":"2026-11-22T00:00:00Z"},{"type":"Healthy","status":"True","reason":"Succeeded","message":"Health check passed in 31ms","observedGeneration":3,"lastTransitionTime":"2026-11-22T00:00:00Z"}],"inventory":{"entries":[{"id":"ns_workload_apps_Deployment","v":"v1"},{"id":"ns_workload__Service","v":"v1"},{"id":"ns_workload__ConfigMap","v":"v1"}]}}}`,
				i,
				i,
				i,
				strings.TrimSuffix(
					strings.Repeat(
						`{"manager":"kustomize-controller","operation":"Update","apiVersion":"kustomize.toolkit.fluxcd.io/v1","time":"2026-11-22T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{},"f:message":{},"f:status":{}}},"f:inventory":{"f:entries":{}}}}},`,
						2,
					),
					",",
				),
			),
		)
	}
	return []byte(
		`{"apiVersion":"kustomize.toolkit.fluxcd.io/v1","kind":"KustomizationList","metadata":{"resourceVersion":"1"},"items":[` + strings.Join(
			items,
			",",
		) + `]}`,
	)
}

// startFleet starts the process that serves the fleet.
func startFleet(b *testing.B) *servedFleet {
	b.Helper()
	command := exec.CommandContext(b.Context(), os.Args[0])
	command.Env = append(os.Environ(), fleetVariable+"=1")
	command.Stderr = os.Stderr
	_, output := processtest.Piped(b, command)
	var fleet servedFleet
	if err := json.NewDecoder(output).Decode(&fleet); err != nil {
		b.Fatal(err)
	}
	return &fleet
}

// clusters returns the clusters of the fleet. 1 % of them are dead.
func (f *servedFleet) clusters() map[string]kube.Cluster {
	clusters := map[string]kube.Cluster{}
	for i := range fleetClusters {
		cluster := kube.Cluster{
			Host:                 "https://" + f.Alive,
			TLSServerName:        serverName(i),
			ClusterCACertificate: f.Authorities[i],
			Token:                fmt.Sprint("token-", i),
		}
		if i%100 == 25 {
			cluster.Host = "https://" + f.Dead
		}
		clusters[serverName(i)] = cluster
	}
	return clusters
}

// fluxKinds are the kinds that a query lists on clusters with Flux.
var fluxKinds = []kube.ResourceKind{
	kustomizations,
	{Group: "helm.toolkit.fluxcd.io", Versions: "v2", Resource: "helmreleases"},
	{Group: "source.toolkit.fluxcd.io", Versions: "v1", Resource: "gitrepositories"},
	{Group: "source.toolkit.fluxcd.io", Versions: "v1", Resource: "ocirepositories"},
	{Group: "source.toolkit.fluxcd.io", Versions: "v1", Resource: "helmrepositories"},
}

// BenchmarkAsk queries 3,000 clusters with 40 objects each: one kind, then also four kinds without objects. A cluster answers
// in 50 ms; 1 % never answer, 1 % take 3 s, and 1 % refuse the credentials. The limits are 10 s and 512 MiB. A cluster is lost
// if its answer came too late, for example because the machine was too busy to connect in time.
func BenchmarkAsk(b *testing.B) {
	clusters := startFleet(b).clusters()
	for _, kinds := range [][]kube.ResourceKind{{kustomizations}, fluxKinds} {
		b.Run(fmt.Sprintf("clusters=3000/kinds=%d", len(kinds)), func(b *testing.B) {
			debug.FreeOSMemory()
			processtest.ForgetPeakMemory()
			b.ReportAllocs()
			lost := 0
			for b.Loop() {
				var mu sync.Mutex
				reasons := map[kube.Reason]int{}
				answers := kube.QueryAll(
					b.Context(),
					clusters,
					kube.QueryOptions{Deadline: 8 * time.Second},
					func(ctx context.Context, _ string, client *kube.ClusterClient) ([]string, error) {
						var revisions []string
						var err error
						options := kube.ListOptions{Skip: map[string][]string{"": {"spec"}}}
						for _, list := range client.ListEach(ctx, kinds, options) {
							err = list.Err
							for _, item := range list.Items {
								revision, _, _ := unstructured.NestedString(item.Object, "status", "lastAppliedRevision")
								revisions = append(revisions, strings.Clone(revision))
							}
						}
						mu.Lock()
						defer mu.Unlock()
						reasons[kube.ReasonOf(err)]++
						return revisions, err
					},
				)
				for name, answer := range answers {
					if answer.Err == nil && len(answer.Value) != fleetObjects {
						b.Fatalf("%s has %d objects", name, len(answer.Value))
					}
				}
				if len(answers) != fleetClusters || reasons[kube.ReasonUnreachable] < fleetClusters/100 {
					b.Fatalf("answers by reason: %v", reasons)
				}
				lost = fleetClusters*98/100 - reasons[""]
			}
			b.ReportMetric(float64(lost), "lost")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/op")
			processtest.ReportPeakMemory(b)
		})
	}
}
