package kube_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// kustomizationText returns the YAML of a Kustomization.
func kustomizationText(namespace string, number int) string {
	return fmt.Sprintf(`apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {name: target-%04d, namespace: %s, labels: {flotilla.dev/owner: dev, parity: "%d"}}
spec: {interval: 10m, prune: true, path: ./large, sourceRef: {kind: GitRepository, name: gitops}}
`, number, namespace, number%2)
}

func TestARealServerAcceptsEveryCredential(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Flux: true})
	certificate, key := server.ClientCertificate(t, "admin", "system:masters")
	byHost := kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA}
	clusterWith := func(change func(*kube.Cluster)) kube.Cluster {
		cluster := byHost
		change(&cluster)
		return cluster
	}
	user := fmt.Sprintf(
		`{client-certificate-data: %s, client-key-data: %s}`,
		base64.StdEncoding.EncodeToString([]byte(certificate)),
		base64.StdEncoding.EncodeToString([]byte(key)),
	)
	clusterJSON := fmt.Sprintf(`{server: %q, certificate-authority-data: %s}`, server.Host, base64.StdEncoding.EncodeToString([]byte(server.CA)))
	for name, cluster := range map[string]kube.Cluster{
		"a token":       clusterWith(func(c *kube.Cluster) { c.Token = server.Token }),
		"a certificate": clusterWith(func(c *kube.Cluster) { c.ClientCertificate, c.ClientKey = certificate, key }),
		"a command": clusterWith(func(c *kube.Cluster) {
			c.Exec = shellExec(t, `printf '%s' '`+execCredential(fmt.Sprintf(`{"token":%q}`, server.Token))+`'`)
		}),
		"a certificate of a command": clusterWith(func(c *kube.Cluster) {
			c.Exec = shellExec(t, `printf '%s' '`+execCredential(fmt.Sprintf(`{"clientCertificateData":%q,"clientKeyData":%q}`, certificate, key))+`'`)
		}),
		"a kubeconfig":                    {Kubeconfig: server.Kubeconfig(), Context: "kubetest"},
		"a kubeconfig with a certificate": {Kubeconfig: newKubeconfig(clusterJSON, user)},
	} {
		if _, err := askOne(t, cluster, time.Minute); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARealServerListsInPages(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Flux: true})
	const namespace = "kube-pages"
	count := acceptancetest.Count(12, 502) // pages have 500 objects; TestAListIsReadInPages covers smaller pages
	server.Apply(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: "+namespace+"}\n")
	var objects []string
	for i := range count {
		objects = append(objects, kustomizationText(namespace, i))
	}
	server.Apply(t, strings.Join(objects, "---\n"))
	cluster := kube.Cluster{Kubeconfig: server.Kubeconfig()}
	answer := kube.QueryAll(t.Context(), map[string]kube.Cluster{"one": cluster}, kube.QueryOptions{Deadline: time.Minute}, func(ctx context.Context, _ string, client *kube.ClusterClient) (string, error) {
		all, err := client.List(ctx, kustomizations, kube.ListOptions{Namespace: namespace})
		odd, oddErr := client.List(ctx, kustomizations, kube.ListOptions{Namespace: namespace, LabelSelector: "flotilla.dev/owner=dev,parity=1"})
		none, noneErr := client.List(ctx, kube.ResourceKind{Group: "flotilla.example", Versions: "v1", Resource: "nothings"}, kube.ListOptions{})
		newer, newerErr := client.List(ctx, kube.ResourceKind{Group: "kustomize.toolkit.fluxcd.io", Versions: "v9,v1", Resource: "kustomizations"}, kube.ListOptions{Namespace: namespace})
		ref := kube.Ref{APIVersion: "kustomize.toolkit.fluxcd.io/v1", Kind: "Kustomization", Namespace: namespace, Name: "target-0007"}
		one, oneErr := client.Read(ctx, ref)
		ref.Name = "gone"
		gone, goneErr := client.Read(ctx, ref)
		maps, mapsErr := client.List(ctx, kube.ResourceKind{Versions: "v1", Resource: "namespaces"}, kube.ListOptions{LabelSelector: "kubernetes.io/metadata.name=" + namespace})
		if err := errors.Join(err, oddErr, noneErr, newerErr, oneErr, goneErr, mapsErr); err != nil {
			return "", err
		}
		return fmt.Sprint(len(all.Items), " ", len(odd.Items), " ", none.Served, " ", newer.Version, " ", len(newer.Items), " ", one.GetName(), " ", len(one.GetManagedFields()) > 0,
			" ", gone, " ", maps.Items[0].GetKind(), maps.Items[0].GetAPIVersion(), " ", all.Items[0].GetName()), nil
	})["one"]
	want := fmt.Sprint(count, " ", count/2, " false v1 ", count, " target-0007 true <nil> Namespacev1 target-0000")
	if answer.Err != nil || answer.Value != want {
		t.Errorf("got %q: %v; want %q", answer.Value, answer.Err, want)
	}
}

func TestRefusalsOfARealServerHaveReasons(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Flux: true})
	certificate, key := server.ClientCertificate(t, "nobody", "nothing")
	for name, c := range map[string]struct {
		cluster kube.Cluster
		reason  kube.Reason
		want    string
	}{
		"a wrong token": {kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, Token: "canary-token-3f9a"}, kube.ReasonUnauthorized, "the API server refuses the credentials (401 Unauthorized)"},
		"a user without rights": {
			kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, ClientCertificate: certificate, ClientKey: key}, kube.ReasonForbidden,
			`the API server does not let these credentials list kustomizations.kustomize.toolkit.fluxcd.io (403 Forbidden): kustomizations.kustomize.toolkit.fluxcd.io is forbidden: User "nobody" cannot list`,
		},
		"another authority": {kube.Cluster{Host: server.Host, ClusterCACertificate: certificate, Token: server.Token}, kube.ReasonUnreachable, "the API server cannot be reached: its certificate is not trusted: x509: "},
		"another name":      {kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, TLSServerName: "api.example.com", Token: server.Token}, kube.ReasonUnreachable, "the API server cannot be reached: its certificate is not trusted: x509: "},
		"another path":      {kube.Cluster{Host: server.Host + "/k8s/clusters/c-1", ClusterCACertificate: server.CA, Token: server.Token}, kube.ReasonGarbage, "the API server does not answer like"},
	} {
		_, err := askOne(t, c.cluster, time.Minute)
		if err == nil || kube.ReasonOf(err) != c.reason || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error is %v, reason %q; want %q: %q", name, err, kube.ReasonOf(err), c.reason, c.want)
		}
	}
}
