package observe_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Neither the order of answers nor the order of listed objects changes evidence and verdicts.
func TestVerdictsDoNotDependOnTheOrderOfAnswers(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(10, 20))
	listed := readRecorded(t, "3*/*.json")
	var first *observe.Observation
	var text string
	for range 50 {
		in := recordedInput(t, "3-new-commit-waits", cd5cf, map[string]string{cd5cf: treeA, c2529: "", c89a4: "", cfa3a: treeB})
		random.Shuffle(len(listed), func(i, j int) { listed[i], listed[j] = listed[j], listed[i] })
		random.Shuffle(len(in.Folders), func(i, j int) { in.Folders[i], in.Folders[j] = in.Folders[j], in.Folders[i] })
		for _, i := range random.Perm(8) {
			cluster, clusterType := fmt.Sprintf("c-%d", i), []string{"argo", "flux"}[i%2]
			in.Types[cluster] = clusterType
			switch i {
			case 6:
				in.Reports[cluster] = observe.ReadExternal(observe.ExternalReport{Commit: c2529, Verdict: verdict.Progressing})
			case 7:
			default:
				in.Reports[cluster] = observe.ReadCluster(recordedLocation, clusterType, cluster, reconciler.Answer{Objects: slices.Clone(listed)})
			}
		}
		result := observe.Observe(in)
		evidence := string(result.Evidence().Marshal())
		if first == nil {
			first, text = result, evidence
		}
		if evidence != text {
			t.Fatalf("got  %s\nwant %s", evidence, text)
		}
		if !reflect.DeepEqual(statusLines(result), statusLines(first)) {
			t.Fatalf("got  %+v\nwant %+v", statusLines(result), statusLines(first))
		}
	}
	read, err := observe.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range first.Clusters {
		for _, a := range cluster.Assignments {
			got := read.Assignment(cluster.Name, a.Key)
			if got.Status != a.Status || got.Known != a.Known || a.Known && !got.Has(a.Tree, a.Folder.Tree) {
				t.Errorf("%s %s is %+v in the evidence, want %+v", cluster.Name, a.Key, got, a)
			}
		}
	}
}

func statusLines(result *observe.Observation) []string {
	var all []string
	for _, cluster := range result.Clusters {
		all = append(all, fmt.Sprint(cluster.Name, cluster.Status, cluster.Leftover))
		for _, a := range cluster.Assignments {
			all = append(all, fmt.Sprint(a.Key, a.Commit, a.Tree, a.Status, a.Edited))
		}
	}
	return all
}

// FuzzObjects judges any object. An object other than an Application is ready only if kstatus calls it current. Messages and running
// versions are short and printable, and the evidence can be parsed.
func FuzzObjects(f *testing.F) {
	for _, documents := range []string{readyKustomization, readySource, readyRelease, readyApplication, readyRepo, strings.TrimSuffix(readySync, "\n")} {
		var seed []byte
		for _, object := range parseObjects(f, documents[1:]) {
			text, err := object.MarshalJSON()
			if err != nil {
				f.Fatal(err)
			}
			seed = text
		}
		f.Add(seed)
	}
	// An API server may answer with names that Kubernetes refuses.
	f.Add([]byte(`{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "` + strings.Repeat("web", 500) + `"}}`))
	f.Add([]byte(`{"apiVersion": "argoproj.io/v1alpha1", "kind": "Application", "metadata": {"name": "web\u001b[2J"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		object := &unstructured.Unstructured{}
		if len(text) > 1<<16 || object.UnmarshalJSON(text) != nil {
			return
		}
		got := reconciler.StatusOf(object)
		if !slices.Contains(verdict.All, got.Verdict) || len(got.Message) > 1000 || got.Message != wording.Visible(got.Message) {
			t.Fatalf("%+v", got)
		}
		if result, err := status.Compute(object); got.Verdict == verdict.Ready && object.GetKind() != "Application" &&
			(err != nil || result.Status != status.CurrentStatus) {
			t.Fatalf("got ready, kstatus reports %v, %v", result, err)
		}
		at := folder.Location{URL: "https://git.example.com/web", Branch: "main"}
		report := observe.ReadCluster(at, "web", "web-1", reconciler.Answer{Objects: []*unstructured.Unstructured{object, object}})
		result := observe.Observe(observe.FleetReports{
			Time: time.Unix(1e9, 0), Types: map[string]string{"web-1": "web"}, Reports: map[string]observe.ClusterReport{"web-1": report},
			Folders: []observe.WrittenFolder{{Host: "web", DeploymentTarget: "a", Tree: treeA, Objects: []reconciler.ObjectName{
				{Kind: object.GetKind(), Namespace: object.GetNamespace(), Name: object.GetName()},
			}}},
		})
		runs := result.Clusters[0].Assignments[0].Running
		for _, text := range []string{runs.Version, runs.Revision, runs.Chart, runs.AppVersion, runs.Images} {
			if len(text) > 2048 || !wording.IsLine(text) {
				t.Fatalf("the running version is %q", text)
			}
		}
		if read, err := observe.Parse(result.Evidence().Marshal()); err != nil || read.RunningOn("web-1", "web/a") != runs {
			t.Fatal(read, err)
		}
	})
}
