package kube_test

import (
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/discovery"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/facts"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// recordedFacts are the answers of a cluster of the benchmark by path: its version, and 5 nodes and 60 pods of realistic size.
var recordedFacts = map[string]func() []byte{
	"/version": sync.OnceValue(func() []byte {
		return []byte(`{"major":"1","minor":"31","gitVersion":"v1.31.2","goVersion":"go1.22.8"}`)
	}),
	"/api/v1/nodes": sync.OnceValue(func() []byte {
		return recordedNodesOrPods(
			"Node",
			5,
			`"labels":{"kubernetes.io/arch":"amd64","kubernetes.io/os":"linux","topology.kubernetes.io/region":"eu-1","topology.kubernetes.io/zone":"eu-1a","kubernetes.io/hostname":"%[1]s"}`,
			`"spec":{"providerID":"azure:///subscriptions/x/%[1]s","podCIDR":"10.0.0.0/24"},"status":{"capacity":{"cpu":"4","memory":"16393244Ki","pods":"110"},"allocatable":{"cpu":"3860m","memory":"12880924Ki","pods":"110"},`+
				`"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True","lastTransitionTime":"2026-11-22T00:00:00Z"}],"nodeInfo":{"kubeletVersion":"v1.31.2","osImage":"Ubuntu 22.04.5 LTS",`+
				`"operatingSystem":"linux","architecture":"amd64","containerRuntimeVersion":"containerd://1.7.25"},"images":[`+strings.TrimSuffix(
				strings.Repeat(
					`{"names":["registry.example.com/team/application@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef","registry.example.com/team/application:v1.2.3"],"sizeBytes":123456789},`,
					50,
				),
				",",
			)+`]}`,
		)
	}),
	"/api/v1/pods": sync.OnceValue(func() []byte {
		return recordedNodesOrPods(
			"Pod",
			60,
			`"namespace":"team"`,
			`"spec":{"nodeName":"node-1","containers":[{"name":"main","image":"registry.example.com/team/application:v1.2.3","env":[`+
				strings.TrimSuffix(
					strings.Repeat(`{"name":"SETTING","value":"some text of an application"},`, 20),
					",",
				)+`],"resources":{"requests":{"cpu":"100m","memory":"128Mi"}}}]},"status":{"phase":"Running"}`,
		)
	}),
}

func recordedNodesOrPods(kind string, count int, metadata, rest string) []byte {
	var items []string
	for i := range count {
		items = append(
			items,
			strings.ReplaceAll(fmt.Sprintf(
				`{"metadata":{"name":"%%[1]s","uid":"5b4e39a0-0000-4000-8000-000000000000",%s,"managedFields":[%s]},%s}`,
				metadata,
				strings.TrimSuffix(
					strings.Repeat(
						`{"manager":"kubelet","operation":"Update","apiVersion":"v1","time":"2026-11-22T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:status":{"f:conditions":{".":{},"k:{\"type\":\"Ready\"}":{".":{},"f:lastTransitionTime":{}}}}}},`,
						4,
					),
					",",
				),
				rest,
			),
				"%[1]s", fmt.Sprintf("node-%d", i)),
		)
	}
	return []byte(
		`{"apiVersion":"v1","kind":"` + kind + `List","metadata":{"resourceVersion":"1"},"items":[` + strings.Join(items, ",") + `]}`,
	)
}

// BenchmarkFacts queries the facts of the 3,000 clusters of BenchmarkAsk, without pods (2 requests each) and with them. The
// limits without pods are 10 s and 256 MiB.
func BenchmarkFacts(b *testing.B) {
	clusters := startFleet(b).clusters()
	for _, requested := range []bool{false, true} {
		b.Run(fmt.Sprintf("clusters=3000/requested=%t", requested), func(b *testing.B) {
			debug.FreeOSMemory()
			processtest.ForgetPeakMemory()
			b.ReportAllocs()
			lost := 0
			for b.Loop() {
				known, _, err := discovery.Discover(
					b.Context(),
					discovery.Question{Reach: clusters, Options: kube.QueryOptions{Deadline: 8 * time.Second}, ReadyPercent: 100, Requested: requested},
				)
				if err != nil || len(known) != fleetClusters {
					b.Fatalf("%d clusters: %v", len(known), err)
				}
				ready := 0
				for name, found := range known {
					if found.Verdict != verdict.Ready {
						continue
					}
					if ready++; found.Facts["nodes"] != 5.0 || requested && found.Facts["requested"].(map[string]any)["pods"] != 60.0 || len(found.Sources) != 1 ||
						found.Sources[0] != facts.Cluster {
						b.Fatalf("%s: %v", name, found.Facts)
					}
				}
				lost = fleetClusters*98/100 - ready
			}
			b.ReportMetric(float64(lost), "lost")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/op")
			processtest.ReportPeakMemory(b)
		})
	}
}
