package served_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects/served"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

func TestMain(m *testing.M) { os.Exit(kubetest.Main(m.Run)) }

func TestAPIsAreServedInARangeOfReleases(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		api            string
		served, absent []string
	}{
		{"v1/Pod", []string{"1.16", "1.34", "1.99"}, nil},
		{"apps/v1", []string{"1.16", "1.34"}, nil},
		{"extensions/v1beta1/Ingress", []string{"1.21"}, []string{"1.22"}},
		{"networking.k8s.io/v1/Ingress", []string{"1.19", "v1.34.2+k3s1"}, []string{"1.18"}},
		{"networking.k8s.io/v1beta1", []string{"1.21"}, []string{"1.22", "1.33"}},
		{"policy/v1beta1/PodSecurityPolicy", []string{"1.24"}, []string{"1.25"}},
		{"policy/v1beta1", []string{"1.24.17"}, []string{"1.25.0"}},
		{"policy/v1/PodDisruptionBudget", []string{"1.21"}, []string{"1.20"}},
		{"batch/v1beta1/CronJob", []string{"1.24"}, []string{"1.25"}},
		{"autoscaling/v2beta1", []string{"1.24"}, []string{"1.25"}},
		{"autoscaling/v2beta2/HorizontalPodAutoscaler", []string{"1.25"}, []string{"1.26"}},
		{"autoscaling/v2/HorizontalPodAutoscaler", []string{"1.23"}, []string{"1.22"}},
		{"flowcontrol.apiserver.k8s.io/v1beta3", []string{"1.26", "1.31"}, []string{"1.25", "1.32"}},
		{"flowcontrol.apiserver.k8s.io/v1/FlowSchema", []string{"1.29"}, []string{"1.28"}},
		{"storage.k8s.io/v1beta1/CSIStorageCapacity", []string{"1.26"}, []string{"1.27"}},
		{"apiextensions.k8s.io/v1beta1", []string{"1.21"}, []string{"1.22"}},
		{"apiextensions.k8s.io/v1/CustomResourceDefinition", []string{"1.34"}, []string{"1.15"}},
		{"apiregistration.k8s.io/v1/APIService", []string{"1.34"}, nil},
		{"authorization.k8s.io/v1/SubjectAccessReview", []string{"1.34"}, nil},
		{"resource.k8s.io/v1/ResourceClaim", []string{"1.34"}, []string{"1.33"}},
		{"resource.k8s.io/v1beta1", nil, []string{"1.32", "1.34"}},                                // off by default
		{"admissionregistration.k8s.io/v1beta1/ValidatingAdmissionPolicy", nil, []string{"1.28"}}, // off by default
		{"internal.apiserver.k8s.io/v1alpha1", nil, []string{"1.20", "1.34"}},                     // alpha
		{"apps/v1/DeploymentList", nil, []string{"1.34"}},                                         // no resource
		{"v1/RangeAllocation", nil, []string{"1.34"}},                                             // no resource
		{"monitoring.coreos.com/v1", nil, []string{"1.34"}},
	} {
		for isServed, versions := range map[bool][]string{true: test.served, false: test.absent} {
			for _, version := range versions {
				apis, err := served.APIs(version)
				if err != nil || slices.Contains(apis, test.api) != isServed {
					t.Errorf("Kubernetes %s serves %s: got %v, %v, want %v", version, test.api, !isServed, err, isServed)
				}
			}
		}
	}
	if apis, err := served.APIs("next"); err == nil {
		t.Errorf("an invalid version serves %v", apis)
	}
}

func TestAPIsOfKubernetesAreKnownByGroup(t *testing.T) {
	t.Parallel()
	for api, want := range map[string]bool{
		"v1": true, "v1/Pod": true, "apps/v1": true, "policy/v1beta1/PodSecurityPolicy": true, "networking.k8s.io/v9/Ingress": true,
		"autoscaling/v2beta2":     true,
		"apiextensions.k8s.io/v1": true, "apiregistration.k8s.io/v1": true, "authorization.k8s.io/v1": true,
		"monitoring.coreos.com/v1": false, "gateway.networking.k8s.io/v1": false, "metrics.k8s.io/v1beta1": false,
		"snapshot.storage.k8s.io/v1/VolumeSnapshot": false,
	} {
		if got := served.IsOfKubernetes(api); got != want {
			t.Errorf("%s: got %v, want %v", api, got, want)
		}
	}
}

// TestAPIsMatchARealServer compares the APIs with the resources of a kube-apiserver, without subresources.
func TestAPIsMatchARealServer(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{})
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{
		Host: server.Host, BearerToken: server.Token, TLSClientConfig: rest.TLSClientConfig{CAData: []byte(server.CA)},
	})
	if err != nil {
		t.Fatal(err)
	}
	version, err := client.ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	_, lists, err := client.ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, list := range lists {
		want = append(want, list.GroupVersion)
		for _, resource := range list.APIResources {
			if !strings.Contains(resource.Name, "/") {
				want = append(want, list.GroupVersion+"/"+resource.Kind)
			}
		}
	}
	slices.Sort(want)
	got, err := served.APIs(version.GitVersion)
	if want = slices.Compact(want); err != nil || !slices.Equal(got, want) {
		t.Errorf("Kubernetes %s: got APIs\n%v, %v\nwant\n%v", version.GitVersion, got, err, want)
	}
}
