package e2e_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// storesConfiguration has the clusters of stores.json behind a hub.
const storesConfiguration = requiredProviders + `
provider "flotilla" {
  clusters = { central = { kubeconfig = file("hub.kubeconfig") } }
}

locals {
  stores = jsondecode(file("stores.json"))
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "shop" }]
    cluster_types = [{ name = "store", reconciler = "argocd-hub" }]
    clusters      = [for name in keys(local.stores) : { name = name, cluster_type = "store" }]
    workloads = [{
      name = "web", workspace = "shop"
      deployment_targets = {
        live = { environment = "dev", labels = { on = "type" }, manifests = { repo = "%[1]s", branch = "main", path = "./live" } }
        own  = { environment = "dev", labels = { on = "cluster" }, manifests = { repo = "%[1]s", branch = "main", path = "./own" } }
      }
    }]
    target_policies = ` + policiesByLabel + `
  })
  gitops_repo = { url = "%[2]s", branch = "dev" }
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = local.gitops_repo
}

resource "flotilla_agent" "store" {
  for_each       = local.stores
  cluster        = each.key
  cluster_type   = "store"
  reconciler     = "argocd-hub"
  hub            = "central"
  environment    = "dev"
  gitops_repo    = local.gitops_repo
  registration   = each.value.registration
  credentials_wo = each.value.credentials
  on_destroy     = each.value.on_destroy
  timeouts       = { delete = "20s" }
  depends_on     = [flotilla_assignment.dev]
}
`

// cuttableProxy forwards connections to a server until it is cut.
type cuttableProxy struct {
	address, target string
	mu              sync.Mutex
	closers         []io.Closer
}

func (r *cuttableProxy) start(t *testing.T) {
	t.Helper()
	listener, err := net.Listen("tcp", r.address)
	if err != nil {
		t.Fatal(err)
	}
	r.address = listener.Addr().String()
	r.track(listener)
	var running sync.WaitGroup
	running.Go(func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", r.target)
			if err != nil {
				_ = from.Close()
				continue
			}
			r.track(from, to)
			running.Go(func() { _, _ = io.Copy(to, from); _ = to.Close() })
			running.Go(func() { _, _ = io.Copy(from, to); _ = from.Close() })
		}
	})
	t.Cleanup(func() { r.cut(); running.Wait() })
}

func (r *cuttableProxy) track(closers ...io.Closer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closers = append(r.closers, closers...)
}

func (r *cuttableProxy) cut() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, closer := range r.closers {
		_ = closer.Close()
	}
	r.closers = nil
}

// hubWithLoss is a hub with the clusters store-1 and store-2. Cutting the proxy loses store-2.
type hubWithLoss struct {
	*testbed
	hub, first, second *kubetest.Server
	proxy              cuttableProxy
	team               *repository
	tf                 *terraform
	user               giteatest.User
}

func newHubWithLoss(t *testing.T) *hubWithLoss {
	t.Helper()
	h := &hubWithLoss{testbed: &testbed{git: giteatest.Start(t)}}
	h.hub = kubetest.StartAnother(t, kubetest.Options{Controllers: true, Agents: true})
	h.first = kubetest.StartAnother(t, kubetest.Options{Controllers: true})
	h.second = kubetest.StartAnother(t, kubetest.Options{Controllers: true})
	h.proxy = cuttableProxy{address: "127.0.0.1:0", target: strings.TrimPrefix(h.second.Host, "https://")}
	h.cluster = h.hub
	central := argoCD{h.hub}
	h.hub.Apply(t, central.settings())
	central.start(t)
	startApplicationSetController(t, h.hub)
	h.user = h.git.User(t)
	gitops := newPrivateRepository(t, h.git, h.user, "gitops")
	h.team = newRepository(t, h.git, h.user, "team")
	h.team.push(map[string]string{
		"live/all.yaml": fmt.Sprintf(workload, "world", 0), "own/all.yaml": fmt.Sprintf(workload, "own", 0),
	})
	h.tf = newTerraform(t, h.user)
	h.tf.writeFile("hub.kubeconfig", h.hub.Kubeconfig())
	h.tf.writeFile("main.tf", fmt.Sprintf(storesConfiguration, h.team.url, gitops.url))
	return h
}

// newStore returns an entry of stores.json. Flotilla registers the cluster if secret is empty.
func (h *hubWithLoss) newStore(cluster *kubetest.Server, host, secret, onDestroy string) map[string]any {
	credentials := map[string]any{"username": h.user.Name, "password": h.user.Token}
	registration := map[string]any{"secret": secret}
	if secret == "" {
		registration = map[string]any{"server": host, "cluster_ca_certificate": cluster.CA}
		credentials["registration"] = map[string]any{"token": cluster.Token}
	}
	return map[string]any{"registration": registration, "credentials": credentials, "on_destroy": onDestroy}
}

// writeStores writes stores.json with store-1 and, if not nil, store-2.
func (h *hubWithLoss) writeStores(t *testing.T, second map[string]any) {
	t.Helper()
	stores := map[string]any{"store-1": h.newStore(h.first, h.first.Host, "", "keep")}
	if second != nil {
		stores["store-2"] = second
	}
	text, err := json.Marshal(stores)
	if err != nil {
		t.Fatal(err)
	}
	h.tf.writeFile("stores.json", string(text))
}

// listSecondStore lists the Applications and the ApplicationSets of store-2 on the hub.
func (h *hubWithLoss) listSecondStore(t *testing.T) (names []string) {
	t.Helper()
	for _, name := range listNames(t, h.hub, applications, "argocd") {
		if strings.Contains(name, "store-2") {
			names = append(names, "Application "+name)
		}
	}
	for _, name := range listNames(t, h.hub, applicationSets, "argocd") {
		if strings.Contains(name, "store-2") {
			names = append(names, "ApplicationSet "+name)
		}
	}
	return names
}

// checkSecondStoreHealthy checks that both Applications of store-2 are healthy.
func (h *hubWithLoss) checkSecondStoreHealthy(t *testing.T) error {
	t.Helper()
	for _, name := range []string{"dev-store-web-live-store-2", "dev-store-2-web-own-store-2"} {
		application := h.hub.Get(t, "argoproj.io/v1alpha1", "Application", "argocd", name)
		if health := field(application, "status", "health", "status"); health != "Healthy" {
			return fmt.Errorf("%s is %v: %s", name, health, argoCD{h.hub}.describeStatus(t, listNames(t, h.hub, applications, "argocd")...))
		}
	}
	return nil
}

// runGuideCommandForSecondStore runs a command of the guide on the hub for store-2 instead of the guide's store-17.
func (h *hubWithLoss) runGuideCommandForSecondStore(t *testing.T, command string) {
	t.Helper()
	requireInGuide(t, "clusters.md.tmpl", command)
	h.runCommand(t, strings.ReplaceAll(command, "store-17", "store-2"))
}

// TestAClusterBehindAHubIsLost removes a lost cluster from its hub with the commands of the guide on clusters.
func TestAClusterBehindAHubIsLost(t *testing.T) {
	if os.Getenv("FLOTILLA_E2E") == "" {
		t.Skip("starts real agents: `make e2e` builds them and runs it")
	}
	t.Parallel()
	h := newHubWithLoss(t)
	for _, test := range []struct{ name, secret, onDestroy, remaining string }{
		{"a cluster", "", "keep", "ApplicationSet dev-store-2-web-own"},
		{"a cluster with on_destroy = \"delete\"", "", "delete", ""},
		{"a cluster with a Secret of others", "cluster-store-2", "keep", "ApplicationSet dev-store-2-web-own"},
	} {
		h.step(t, "hub", test.name+" is deployed", func() {
			h.proxy.start(t)
			if test.secret != "" {
				certificate := base64.StdEncoding.EncodeToString([]byte(h.second.CA))
				h.hub.Apply(t, fmt.Sprintf(clusterSecret, "store-2", "https://"+h.proxy.address, h.second.Token, certificate))
			}
			h.writeStores(t, h.newStore(h.second, "https://"+h.proxy.address, test.secret, test.onDestroy))
			h.tf.run("apply", "-auto-approve", "-no-color")
			eventually(t, func() error { return h.checkSecondStoreHealthy(t) })
		})
		h.step(t, "hub", test.name+" is lost and removed", func() {
			h.proxy.cut()
			h.writeStores(t, nil)
			if test.onDestroy == "delete" {
				_, err := h.tf.tryRun("apply", "-auto-approve", "-no-color")
				const text = "what the hub has applied to the cluster is still there"
				if err == nil || !strings.Contains(strings.Join(strings.Fields(err.Error()), " "), text) {
					t.Errorf("the apply with the Secret on the hub: got error %v", err)
				}
			}
			h.runGuideCommandForSecondStore(t, "kubectl --namespace argocd delete secrets "+
				"--selector argocd.argoproj.io/secret-type=cluster,flotilla.dev/cluster=store-17")
			h.tf.run("apply", "-auto-approve", "-no-color")
			eventually(t, func() error {
				if remaining := strings.Join(h.listSecondStore(t), " "); remaining != test.remaining {
					return fmt.Errorf("the hub has %q, want %q", remaining, test.remaining)
				}
				return nil
			})
			h.runGuideCommandForSecondStore(t, "kubectl --namespace argocd delete applicationsets --selector flotilla.dev/host=clusters.store-17")
			if remaining := h.listSecondStore(t); len(remaining) > 0 {
				t.Errorf("the hub still has %q", remaining)
			}
		})
		h.step(t, "hub", "the other cluster gets a change", func() {
			if err := h.tf.checkEmptyPlan(); err != nil {
				t.Error(err)
			}
			h.team.push(map[string]string{"live/all.yaml": fmt.Sprintf(workload, test.name, 0)})
			eventually(t, func() error {
				return checkConfigMap(t, h.first, "dev-store-web-live", "greeting", "hello", test.name)
			})
		})
	}
}
