package provider_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

// objectsOnCluster describes a cluster that follows the folder of a host with final objects. The folder is applied at one commit, the
// objects at another.
type objectsOnCluster struct {
	url, host             string
	root, objects         string    // commits
	readySince, checkedAt time.Time // times of the content and of the agent's last look
	failed                bool
}

func (f objectsOnCluster) apiLists(t *testing.T) map[string][]any {
	t.Helper()
	lists := map[string][]any{}
	text := func(at time.Time) string { return at.UTC().Format(time.RFC3339) }
	condition := func(reason string) []any {
		status := "True"
		if f.failed {
			status, reason = "False", "HealthCheckFailed"
		}
		return []any{
			map[string]any{
				"type":               "Ready",
				"status":             status,
				"reason":             reason,
				"message":            reason,
				"observedGeneration": 1,
				"lastTransitionTime": text(f.checkedAt),
			},
		}
	}
	addObject := func(resource string, object map[string]any, status map[string]any) {
		object["metadata"].(map[string]any)["generation"] = 1
		status["observedGeneration"] = 1
		object["status"] = status
		at := fmt.Sprintf("/apis/%s/%s", object["apiVersion"], resource)
		lists[at] = append(lists[at], object)
	}
	kustomization := func(revision string) map[string]any {
		return map[string]any{
			"conditions": condition(
				"ReconciliationSucceeded",
			), "lastAppliedRevision": "dev@sha1:" + revision, "lastAttemptedRevision": "dev@sha1:" + revision,
			"history": []any{map[string]any{
				"digest": "sha256:0a", "firstReconciled": text(f.readySince), "lastReconciled": text(f.checkedAt), "totalReconciliations": 9,
				"lastReconciledStatus": "ReconciliationSucceeded", "metadata": map[string]any{"revision": "dev@sha1:" + revision},
			}},
		}
	}
	application := func(object map[string]any, revision string) map[string]any {
		health := "Healthy"
		if f.failed {
			health = "Degraded"
		}
		return map[string]any{
			"health": map[string]any{"status": health, "lastTransitionTime": text(f.readySince)},
			"sync": map[string]any{
				"status":     "Synced",
				"revision":   revision,
				"comparedTo": map[string]any{"source": object["spec"].(map[string]any)["source"]},
			},
			"history":      []any{map[string]any{"revision": revision, "deployedAt": text(f.readySince)}},
			"reconciledAt": text(f.checkedAt), "operationState": map[string]any{"phase": "Succeeded", "finishedAt": text(f.readySince)},
		}
	}
	object := func(apiVersion, kind, namespace, name string, spec map[string]any) map[string]any {
		return map[string]any{
			"apiVersion": apiVersion,
			"kind":       kind,
			"metadata":   map[string]any{"name": name, "namespace": namespace},
			"spec":       spec,
		}
	}
	failed := f.failed
	f.failed = false
	addObject(
		"gitrepositories",
		object(
			"source.toolkit.fluxcd.io/v1",
			"GitRepository",
			"flux-system",
			"flotilla",
			map[string]any{"url": f.url, "ref": map[string]any{"branch": "dev"}},
		),
		map[string]any{
			"conditions": condition("Succeeded"),
			"artifact":   map[string]any{"revision": "dev@sha1:" + f.root, "lastUpdateTime": text(f.checkedAt)},
		},
	)
	path := "clusters/all/" + f.host
	isFlux := false
	for document := range strings.SplitSeq(fileOnBranch(t, f.url, path+"/till-live/reconciler.yaml"), "\n---\n") {
		var one map[string]any
		if err := yaml.Unmarshal([]byte(document), &one); err != nil {
			t.Fatal(err)
		}
		f.failed = failed
		switch one["kind"] {
		case "Kustomization":
			isFlux = true
			addObject("kustomizations", one, kustomization(f.objects))
		case "HelmRelease":
			isFlux = true
			looked := f.checkedAt
			f.checkedAt = f.readySince // helm-controller updates its status only with an action
			addObject("helmreleases", one, map[string]any{
				"conditions": condition("UpgradeSucceeded"), "helmChart": "flux-system/chart", "lastAttemptedRevision": "1.2.1+0123",
				"history": []any{
					map[string]any{"chartName": "till", "chartVersion": "1.2.1+0123", "status": "deployed", "lastDeployed": text(f.readySince)},
				},
			})
			f.failed = false
			addObject("helmcharts", object("source.toolkit.fluxcd.io/v1", "HelmChart", "flux-system", "chart", map[string]any{
				"chart": "./" + path + "/till-live/objects", "version": "*", "sourceRef": map[string]any{"kind": "GitRepository", "name": "flotilla"},
			}), map[string]any{
				"conditions": condition(
					"ChartPackageSucceeded",
				), "observedChartName": "till", "observedSourceArtifactRevision": "dev@sha1:" + f.objects,
				"artifact": map[string]any{"revision": "1.2.1+0123", "lastUpdateTime": text(f.readySince)},
			})
			f.checkedAt = looked
		case "Application":
			addObject("applications", one, application(one, f.objects))
		}
		f.failed = false
	}
	if isFlux {
		addObject("kustomizations", object("kustomize.toolkit.fluxcd.io/v1", "Kustomization", "flux-system", "root", map[string]any{
			"path": "./" + path, "sourceRef": map[string]any{"kind": "GitRepository", "name": "flotilla"}, "wait": true,
		}), kustomization(f.root))
	} else {
		root := object("argoproj.io/v1alpha1", "Application", "argocd", "root", map[string]any{
			"source": map[string]any{"repoURL": f.url, "path": path, "targetRevision": "dev", "directory": map[string]any{"recurse": true}},
		})
		addObject("applications", root, application(root, f.root))
	}
	return lists
}

// With each commit of the branch, the agent reports a new revision of final objects. Their verdict and its time depend only on the
// content of the folder.
func TestCommitsOfOthersKeepTheStatusOfFinalObjects(t *testing.T) {
	t.Parallel()
	charts := newChartServer(t)
	pin := charts.publish(t, "1.2.1", chartWithoutSecret)
	repo, commit := serveRepository(
		t,
		map[string]string{"plain/all.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: greeting}\ndata: {region: \"of-${REGION}\"}\n"},
	)
	for name, test := range map[string]struct {
		reconciler  string
		manifests   map[string]any // nil for the chart
		wantVersion string
	}{
		"Kustomization": {"flux", map[string]any{"repo": repo, "commit": commit, "path": "plain"}, "<nil> " + commit},
		"HelmRelease":   {"flux", nil, "1.2.1 0123"},
		"Application":   {"argocd", nil, "1.2.1 <nil>"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			clock := &stoppedClock{now: time.Now().Truncate(time.Second)}
			url, start := bare(t), provider.StartAt(clock)
			w := providertest.New(start)
			configure := func(value int, reports map[string]objectsOnCluster) (configuration providertest.Configuration, arguments map[string]any) {
				argument := objectsFleet(charts, pin, value, "objects", test.reconciler)
				if test.manifests != nil {
					argument = renderedFleet(folder.Pin{}, test.manifests, map[string]any{"config_as": []any{"substitute"}}, nil)
					argument["config_containers"] = []any{map[string]any{"name": "all", "data": map[string]any{"REGION": fmt.Sprint(value)}}}
				}
				var types, clusters []any
				known := map[string]any{}
				for _, host := range []string{"canary", "region"} {
					types = append(
						types,
						map[string]any{"name": host, "labels": map[string]any{"ring": host}, "render": "objects", "reconciler": test.reconciler},
					)
					clusters = append(clusters, map[string]any{"name": host + "-a", "cluster_type": host})
				}
				for cluster, onCluster := range reports {
					known[cluster] = map[string]any{"host": serveLists(t, onCluster.apiLists(t)), "token": "canary-0123456789"}
				}
				argument["cluster_types"], argument["clusters"] = types, clusters
				first := ringStage("canary")
				first["soak"] = "1s"
				arguments = map[string]any{
					"name": "dev", "fleet": fleetOf(argument), "gitops_repo": map[string]any{"url": url, "branch": "dev", "path": "clusters/all"}, "feedback": map[string]any{"clusters": true},
				}
				configuration = assigned(url, arguments["fleet"], map[string]any{
					"rollout":  map[string]any{"stages": []any{first, ringStage("region")}, "on_failure": "roll_back"},
					"evidence": providertest.Reading{DataSource: "flotilla_compliance", Attribute: "evidence", Attributes: arguments},
				})
				configuration.Provider = map[string]any{"clusters": known}
				return configuration, arguments
			}
			tip := func() string { return git(t, url, "rev-parse", "dev") }
			commitByOthers := func() string {
				commitByHand(t, url, "dev", func(folder string) {
					if err := os.WriteFile(filepath.Join(folder, "README.md"), []byte(tip()), 0o600); err != nil {
						t.Fatal(err)
					}
				})
				return tip()
			}
			first, _ := configure(3, nil)
			apply(t, w, first)
			since := clock.now.Add(time.Second)
			if fileOnBranch(t, url, "clusters/all/region/till-live/reconciler.yaml") != "" {
				t.Fatal("both stages are written at once")
			}
			objects, root := commitByOthers(), commitByOthers()
			canary := objectsOnCluster{url: url, host: "canary", root: root, objects: objects, readySince: since, checkedAt: since.Add(time.Hour)}
			clock.now = since.Add(2 * time.Second) // the soak time
			next, arguments := configure(3, map[string]objectsOnCluster{"canary-a": canary})
			read, diags := providertest.New(start).
				ReadData(t.Context(), providertest.Configuration{Provider: next.Provider}, "flotilla_compliance", arguments)
			if diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			status := read["clusters"].(map[string]any)["canary-a"].(map[string]any)
			if status["verdict"] != "ready" || status["since"] != since.UTC().Format(time.RFC3339) {
				t.Errorf("after commits of others, the cluster has status %v", status)
			}
			if runs := asList(read["running"]); len(runs) != 1 ||
				fmt.Sprint(runs[0].(map[string]any)["version"], " ", runs[0].(map[string]any)["revision"]) != test.wantVersion {
				t.Errorf("the cluster runs %v, want %s", runs, test.wantVersion)
			}
			apply(t, w, next)
			if fileOnBranch(t, url, "clusters/all/region/till-live/reconciler.yaml") == "" {
				t.Error("after the soak time, the second stage is not written")
			}

			// A report about the former content decides nothing about the new content.
			changed, _ := configure(4, map[string]objectsOnCluster{"canary-a": canary})
			apply(t, w, changed)
			wanted := tip()
			canary.root, canary.failed = wanted, true
			late, arguments := configure(4, map[string]objectsOnCluster{"canary-a": canary})
			read, diags = providertest.New(start).
				ReadData(t.Context(), providertest.Configuration{Provider: late.Provider}, "flotilla_compliance", arguments)
			if diags.Err() != nil {
				t.Fatal(diags.Err())
			}
			status = read["clusters"].(map[string]any)["canary-a"].(map[string]any)
			if message := fmt.Sprint(status["message"]); status["verdict"] != "progressing" ||
				!strings.Contains(message, "has commit "+objects[:7]+", in which its folder is another one") {
				t.Errorf("after a failure of the former content, the status is %v", status)
			}
			apply(t, w, late)
			if tip() != wanted {
				t.Errorf("the failure of the former content rolls the change back: %s", git(t, url, "log", "--oneline", "dev"))
			}
		})
	}
}
