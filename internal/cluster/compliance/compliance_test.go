package compliance_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/compliance"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery"
	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

const (
	ready  = "07fb32228e5a5613525e788b19e11c37f9ebacf9" // the applied commit of the recorded clusters
	newer  = "2222222222222222222222222222222222222222"
	absent = "3333333333333333333333333333333333333333"
	treeA  = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	treeB  = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	token  = "canary-token-7c41"
)

var questionTime = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

// repository is a GitOps repository in memory. Each commit has one tree, shared by all folders.
type repository struct {
	tip      string
	commits  map[string]string
	statuses []delivery.CommitStatuses
	// extraObjects are additional objects in the records, by host.
	extraObjects map[string]folder.ObjectRef
	// creatorsQueried is set if ReadStatuses was asked for the creators.
	creatorsQueried bool

	writtenErr, commitsErr, statusesErr error
}

func (r *repository) ReadOwner(ctx context.Context, _ delivery.Owner, wanted folder.Trees) (gitops.OwnerSnapshot, error) {
	if err := firstError(ctx.Err(), r.writtenErr); err != nil {
		return gitops.OwnerSnapshot{}, err
	}
	written := gitops.OwnerSnapshot{Tip: r.tip, Records: map[folder.Key]gitops.FolderRecord{}, Trees: folder.Trees{}}
	for _, key := range wanted.Keys() {
		kind, namespace := "Kustomization", "flux-system"
		if key.Host == "argo" {
			kind, namespace = "Application", "argocd"
		}
		if written.Trees[key.Host] == nil {
			written.Trees[key.Host] = map[string]string{}
		}
		written.Trees[key.Host][key.DeploymentTarget] = r.commits[r.tip]
		written.Records[key] = gitops.FolderRecord{Tree: r.commits[r.tip], Record: folder.Record{
			Manifests: &folder.Manifests{Tag: "v2"},
			Objects:   []folder.ObjectRef{{Kind: kind, Namespace: namespace, Name: "dev-" + key.Host + "-" + key.DeploymentTarget}},
		}}
		if extra, ok := r.extraObjects[key.Host]; ok && key.DeploymentTarget == "web-main" {
			record := written.Records[key]
			record.Objects = append(record.Objects, extra)
			written.Records[key] = record
		}
	}
	return written, nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *repository) FindCommits(ctx context.Context, _ delivery.Owner, ids []string, want folder.Trees) (map[string]gitops.ReportedCommit, error) {
	if err := firstError(ctx.Err(), r.commitsErr); err != nil {
		return nil, err
	}
	found := map[string]gitops.ReportedCommit{}
	for _, id := range ids {
		tree, ok := r.commits[id]
		if !ok {
			found[id] = gitops.ReportedCommit{Reason: "the branch does not have this commit"}
			continue
		}
		trees := folder.Trees{}
		for _, key := range want.Keys() {
			if trees[key.Host] == nil {
				trees[key.Host] = map[string]string{}
			}
			trees[key.Host][key.DeploymentTarget] = tree
		}
		found[id] = gitops.ReportedCommit{ID: id, Trees: trees}
	}
	return found, nil
}

func (r *repository) ReadStatuses(
	ctx context.Context, query delivery.StatusQuery, enough func([]delivery.CommitStatuses) bool,
) ([]delivery.CommitStatuses, error) {
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	limit := query.Limit
	r.creatorsQueried = query.Creators
	for i := range min(limit, len(r.statuses)) {
		if enough(r.statuses[:i+1]) {
			return r.statuses[:i+1], r.statusesErr
		}
	}
	return r.statuses[:min(limit, len(r.statuses))], r.statusesErr
}

// newQuestion returns a question about clusters of the types argo and flux, each with two deployment targets.
func newQuestion(types map[string]string) compliance.Question {
	q := compliance.Question{
		Owner:    delivery.Owner{Name: "dev", Location: folder.Location{URL: "http://127.0.0.1:13000/flotadmin/gitops.git", Branch: "dev"}},
		Time:     questionTime,
		Schedule: &schedule.Decisions{}, Clusters: map[string]compliance.FleetCluster{},
	}
	for _, host := range []string{"argo", "flux"} {
		for _, target := range []string{"db-main", "web-main"} {
			q.Schedule.Assignments = append(q.Schedule.Assignments, &schedule.Assignment{
				Host: &schedule.Host{Name: host, ClusterType: &fleet.ClusterType{Name: host}}, Target: &schedule.Target{Name: target},
				Namespace: "dev-" + host + "-" + target,
			})
		}
	}
	for name, clusterType := range types {
		reconciler := map[string]string{"argo": "argocd", "flux": "flux"}[clusterType]
		q.Clusters[name] = compliance.FleetCluster{Type: clusterType, Reconciler: reconciler}
	}
	return q
}

// startAPI starts an API server with the recorded objects of a moment.
func startAPI(t *testing.T, moment string, change func(map[string]any)) kube.Cluster {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "observe", "testdata", moment, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	items := map[string][]any{} // by path
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := json.Unmarshal(text, &object); err != nil {
			t.Fatal(err)
		}
		if change != nil {
			change(object)
		}
		plural := map[string]string{"Kustomization": "kustomizations", "GitRepository": "gitrepositories", "Application": "applications"}[object["kind"].(string)]
		path := fmt.Sprintf("/apis/%s/%s", object["apiVersion"], plural)
		items[path] = append(items[path], object)
	}
	return startServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		found, ok := items[r.URL.Path]
		if !ok && r.URL.Path != "/version" {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, "404 page not found")
			return
		}
		answer := map[string]any{"gitVersion": "v1.36.3", "kind": "List", "apiVersion": "v1", "metadata": map[string]any{}, "items": found}
		_ = json.NewEncoder(w).Encode(answer)
	})
}

// forbidResource starts a proxy of an API server that forbids listing one resource.
func forbidResource(t *testing.T, all kube.Cluster, resource string) kube.Cluster {
	t.Helper()
	return replaceAnswer(t, all, resource, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`)
	})
}

func startServer(t *testing.T, handler http.HandlerFunc) kube.Cluster {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return kube.Cluster{Host: s.URL, ClusterCACertificate: string(certificate), Token: token}
}

// expectation has the expected verdict and a part of the expected reason.
type expectation struct {
	verdict verdict.Verdict
	reason  string
}

func checkVerdicts(t *testing.T, answer *compliance.Answer, want map[string]expectation) {
	t.Helper()
	if len(answer.Result.Clusters) != len(want) {
		t.Errorf("there are %d clusters, want %d", len(answer.Result.Clusters), len(want))
	}
	for _, c := range answer.Result.Clusters {
		if want := want[c.Name]; c.Verdict != want.verdict || !strings.Contains(c.Message, want.reason) {
			t.Errorf("%s is %s: %s; want %s: %s", c.Name, c.Verdict, c.Message, want.verdict, want.reason)
		}
	}
	text := string(answer.Result.Evidence().Marshal())
	if strings.Contains(text, token) {
		t.Errorf("the evidence has a secret: %s", text)
	}
	if _, err := observe.Parse([]byte(text)); err != nil {
		t.Error(err)
	}
}

func mustEvaluate(t *testing.T, r *repository, q compliance.Question) *compliance.Answer {
	t.Helper()
	answer, err := compliance.Evaluate(t.Context(), r, q)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestRunningVersionsAreReadFromClusters(t *testing.T) {
	t.Parallel()
	const revision = "70bd5d43ff21c6e481072379cf5574f77cbe4509"
	q := newQuestion(map[string]string{"argo-1": "argo", "argo-2": "argo"})
	q.Feedback.Clusters = &compliance.Clusters{
		Reach: map[string]kube.Cluster{"argo-1": startAPI(t, "2-first-deploy-not-ready", nil), "argo-2": {Host: "https://127.0.0.1:1"}},
	}
	answer := mustEvaluate(t, &repository{tip: newer, commits: map[string]string{ready: treeA, newer: treeA}}, q)
	var got []string
	for _, run := range answer.Result.AssignmentRuns() {
		got = append(got, fmt.Sprint(run.Key(), run.Wanted, run.Version, run.Revision, run.Images, run.Clusters, run.Everywhere))
	}
	want := []string{
		fmt.Sprint("argo/db-main", "v2", "main", revision, "example.com/db:1", []string{"argo-1"}, false),
		fmt.Sprint("argo/web-main", "v2", "main", revision, "", []string{"argo-1"}, false),
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFailingClusterDoesNotFailTheEvaluation(t *testing.T) {
	t.Parallel()
	q := newQuestion(map[string]string{
		"argo-1": "argo", "flux-1": "flux", "flux-busy": "flux", "flux-dead": "flux", "flux-refuses": "flux", "flux-forbids": "flux",
		"flux-narrow": "flux", "flux-garbage": "flux", "flux-bare": "flux", "flux-stranger": "flux", "flux-waiting": "flux", "flux-half": "flux",
	})
	refuse := func(code int) kube.Cluster {
		return startServer(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no, %s","code":%d}`, token, code)
		})
	}
	q.Feedback.Clusters = &compliance.Clusters{
		Waiting: map[string]bool{"flux-waiting": true},
		Reach: map[string]kube.Cluster{
			"argo-1": startAPI(t, "1-ready", nil), "flux-1": startAPI(t, "1-ready", nil), "flux-busy": startAPI(t, "3-new-commit-waits", nil),
			"flux-narrow":  forbidResource(t, startAPI(t, "1-ready", nil), "gitrepositories"),
			"flux-dead":    {Host: "https://127.0.0.1:1", Token: token},
			"flux-refuses": refuse(http.StatusUnauthorized), "flux-forbids": refuse(http.StatusForbidden),
			"flux-garbage": startServer(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello "+token) }),
			"flux-bare": startServer(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/version" {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
			}),
			"flux-half": startServer(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"kind":"KustomizationList","apiVersion":"kustomize.toolkit.fluxcd.io/v1","metadata":{},"items":[{"metad`)
			}),
			"not-of-the-fleet": {Host: "https://127.0.0.1:1"},
		},
	}
	answer := mustEvaluate(t, &repository{tip: newer, commits: map[string]string{ready: treeA, newer: treeA}}, q)
	checkVerdicts(t, answer, map[string]expectation{
		"argo-1": {verdict.Ready, ""}, "flux-1": {verdict.Ready, ""},
		"flux-busy":     {verdict.Unknown, "the branch does not have this commit"},
		"flux-narrow":   {verdict.Unknown, "depends on GitRepository flux-system/dev-flux-db-main, which cannot be read: "},
		"flux-dead":     {verdict.Unknown, "API server"},
		"flux-refuses":  {verdict.Unknown, "refuses the credentials"},
		"flux-forbids":  {verdict.Unknown, "list"},
		"flux-garbage":  {verdict.Unknown, "API server"},
		"flux-half":     {verdict.Unknown, "API server"},
		"flux-bare":     {verdict.Unknown, "the cluster has no kustomizations.kustomize.toolkit.fluxcd.io"},
		"flux-stranger": {verdict.Unknown, "the provider does not know this cluster"},
		"flux-waiting":  {verdict.Unknown, "the connection to the cluster is not known yet"},
	})
	if got := strings.Join(answer.NotAsked, " "); got != "flux-stranger" {
		t.Errorf("got clusters %q not asked, want flux-stranger", got)
	}
	// The branch wants other content.
	answer = mustEvaluate(t, &repository{tip: newer, commits: map[string]string{ready: treeA, newer: treeB}}, q)
	if got := answer.Result.Clusters[1]; got.Name != "flux-1" || got.Verdict != verdict.Behind || got.Commit != ready {
		t.Errorf("%+v", got.Status)
	}
}

func TestAHubReportsTheClustersThatItDeploysTo(t *testing.T) {
	t.Parallel()
	nameCluster := func(object map[string]any) {
		if object["kind"] == "Application" {
			for _, at := range []map[string]any{object["spec"].(map[string]any), object["status"].(map[string]any)["sync"].(map[string]any)["comparedTo"].(map[string]any)} {
				at["destination"].(map[string]any)["name"] = "argo-1"
			}
		}
	}
	q := newQuestion(map[string]string{"argo-1": "argo", "argo-2": "argo"})
	q.Feedback.Hub = &compliance.Hub{Name: "hub", Known: true, Reach: startAPI(t, "1-ready", nameCluster)}
	r := &repository{tip: ready, commits: map[string]string{ready: treeA}}
	checkVerdicts(t, mustEvaluate(t, r, q), map[string]expectation{
		"argo-1": {verdict.Ready, ""}, "argo-2": {verdict.Unknown, "nothing on the cluster follows"},
	})
	q.Feedback.Hub = &compliance.Hub{Name: "hub", Known: true, Reach: kube.Cluster{Host: "https://127.0.0.1:1", Token: token}}
	checkVerdicts(t, mustEvaluate(t, r, q), map[string]expectation{"argo-1": {verdict.Unknown, `the hub "hub": `}, "argo-2": {verdict.Unknown, `the hub "hub": `}})
	q.Feedback.Hub.Known = false
	checkVerdicts(t, mustEvaluate(t, r, q), map[string]expectation{
		"argo-1": {verdict.Unknown, "is not known yet"}, "argo-2": {verdict.Unknown, "is not known yet"},
	})
}

func TestAnswersOfClustersOverrideReports(t *testing.T) {
	t.Parallel()
	q := newQuestion(map[string]string{"flux-1": "flux", "flux-2": "flux", "flux-3": "flux"})
	q.Feedback.Clusters = &compliance.Clusters{Reach: map[string]kube.Cluster{
		"flux-1": startAPI(t, "1-ready", nil), "flux-2": {Host: "https://127.0.0.1:1"}, "flux-3": {Host: "https://127.0.0.1:1"},
	}}
	q.Feedback.Reports = []observe.ExternalReport{
		{Cluster: "flux-1", Commit: absent, Verdict: verdict.Ready},
		{Cluster: "flux-2", Commit: absent, Verdict: verdict.Ready, Since: questionTime.Add(-time.Hour)},
		{Cluster: "flux-2", Commit: ready, Verdict: verdict.Ready, Since: questionTime.Add(-time.Minute)},
		{Cluster: "flux-3", Message: "its metrics are gone"},
	}
	r := &repository{tip: ready, commits: map[string]string{ready: treeA}}
	checkVerdicts(t, mustEvaluate(t, r, q), map[string]expectation{
		"flux-1": {verdict.Ready, ""}, "flux-2": {verdict.Ready, ""}, "flux-3": {verdict.Unknown, "API server"},
	})
	q.Feedback = compliance.Feedback{
		Reports: []observe.ExternalReport{{Cluster: "flux-1", Message: "its metrics are gone"}, {Cluster: "flux-2", Commit: ready}},
	}
	checkVerdicts(t, mustEvaluate(t, r, q), map[string]expectation{
		"flux-1": {verdict.Unknown, "its metrics are gone"}, "flux-2": {verdict.Unknown, "does not say whether it is ready"},
		"flux-3": {verdict.Unknown, "there is no report"},
	})
	q.Feedback = compliance.Feedback{}
	checkVerdicts(t, mustEvaluate(t, r, q), map[string]expectation{
		"flux-1": {
			verdict.Unknown,
			"`feedback` is empty",
		}, "flux-2": {verdict.Unknown, "`feedback` is empty"}, "flux-3": {verdict.Unknown, "`feedback` is empty"},
	})
}

func TestAnUnreadableRepositoryIsNoError(t *testing.T) {
	t.Parallel()
	q := newQuestion(map[string]string{"flux-1": "flux"})
	q.Feedback.Reports = []observe.ExternalReport{{Cluster: "flux-1", Commit: ready, Verdict: verdict.Ready}}
	for name, test := range map[string]struct {
		r      *repository
		reason string
		fails  bool
	}{
		"a missing repository":             {&repository{writtenErr: git.ErrNotFound}, "the GitOps repository does not exist", true},
		"refused credentials":              {&repository{writtenErr: git.ErrUnauthorized}, "the GitOps repository refuses the credentials", true},
		"an unreachable repository":        {&repository{writtenErr: git.ErrUnreachable}, "the GitOps repository cannot be read", true},
		"a missing branch":                 {&repository{}, "the branch does not exist yet", false},
		"unreachable after the first read": {&repository{tip: newer, commits: map[string]string{newer: treeA}, commitsErr: git.ErrUnreachable}, "its trees cannot be read", true},
		"a missing commit":                 {&repository{tip: newer, commits: map[string]string{newer: treeA}}, "the branch does not have this commit", false},
	} {
		answer := mustEvaluate(t, test.r, q)
		checkVerdicts(t, answer, map[string]expectation{"flux-1": {verdict.Unknown, test.reason}})
		if (answer.Repository != nil) != test.fails {
			t.Errorf("%s: %v", name, answer.Repository)
		}
	}
	q.Offline = "not yet"
	checkVerdicts(t, mustEvaluate(t, nil, q), map[string]expectation{"flux-1": {verdict.Unknown, "not yet"}})
}

func TestOnlyCancellationIsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := newQuestion(map[string]string{"flux-1": "flux"})
	if _, err := compliance.Evaluate(ctx, &repository{tip: newer}, q); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
	q.Offline = "not yet"
	if _, err := compliance.Evaluate(ctx, nil, q); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
