package onboarding_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

func TestAnApplyWaitsUntilTheFoldersAreFollowed(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	config := settings("followed")
	objects := renderObjects(t, config)
	const tip = "1111111111111111111111111111111111111111"
	wanted := onboarding.Wanted{Objects: objects, Following: &onboarding.Following{
		Location: folder.Location{URL: config.Repository.URL, Branch: config.Repository.Branch},
		Cluster:  config.Cluster, ClusterType: config.ClusterType,
	}}
	withClient(t, server, 3*time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		wanted.Following.Tip = func(context.Context) (string, error) { return tip, nil }
		limited, end := context.WithCancel(ctx)
		defer end()
		_, err := onboarding.Apply(limited, &impatientCluster{ClusterAPI: cluster, end: end}, wanted)
		if failures := onboarding.FailuresOf(err); len(failures) != 1 || failures[0].Cause != onboarding.CauseTime ||
			!strings.HasPrefix(err.Error(), "not ready in time: GitRepository followed/flotilla ") {
			t.Errorf("the error is %v", err)
		}
		setReady := func(kind string, ref kube.Ref, status map[string]any) {
			live := server.Get(t, ref.APIVersion, kind, ref.Namespace, ref.Name)
			status["observedGeneration"] = live.GetGeneration()
			status["conditions"] = []any{map[string]any{
				"type": "Ready", "status": "True", "reason": "Done", "message": "done", "observedGeneration": live.GetGeneration(), "lastTransitionTime": "2026-01-02T03:04:05Z",
			}}
			server.SetStatus(t, live, status)
		}
		setRevision := func(commit string) {
			for _, object := range objects {
				switch ref := kube.RefOf(object.Unstructured); ref.Kind {
				case "GitRepository":
					setReady(ref.Kind, ref, map[string]any{"artifact": map[string]any{
						"revision": "dev@sha1:" + commit, "digest": "sha256:" + strings.Repeat("0", 64), "path": "x", "url": "http://x", "lastUpdateTime": "2026-01-02T03:04:05Z",
					}})
				case "Kustomization":
					setReady(ref.Kind, ref, map[string]any{"lastAppliedRevision": "dev@sha1:" + commit, "lastAttemptedRevision": "dev@sha1:" + commit})
				}
			}
		}
		setRevision("2222222222222222222222222222222222222222")
		limited, end = context.WithCancel(ctx)
		defer end()
		_, err = onboarding.Apply(limited, &impatientCluster{ClusterAPI: cluster, end: end}, wanted)
		if err == nil || !strings.Contains(err.Error(), "folder store: commit 1111111 has not been applied yet") {
			t.Errorf("at another commit, the error is %v", err)
		}
		calls := 0
		wanted.Following.Tip = func(context.Context) (string, error) {
			if calls++; calls == 3 {
				setRevision(tip)
			}
			return tip, nil
		}
		if result := mustApply(ctx, t, cluster, wanted); len(result.Records) != len(objects) ||
			slices.ContainsFunc(result.Records, func(r onboarding.Record) bool { return !r.Created }) {
			t.Errorf("the records are %+v", result.Records)
		}
	})
}
