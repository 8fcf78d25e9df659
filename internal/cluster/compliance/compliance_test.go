package compliance_test

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
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
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

const (
	ready = "07fb32228e5a5613525e788b19e11c37f9ebacf9" // what the recorded clusters have applied
	newer = "2222222222222222222222222222222222222222"
	gone  = "3333333333333333333333333333333333333333"
	treeA = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	treeB = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
	token = "canary-token-7c41"
)

var asked = time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)

// repository is one in memory: each commit has a tree for all folders.
type repository struct {
	tip      string
	commits  map[string]string
	statuses []delivery.CommitStatuses
	creators bool // who set the statuses was asked for
	// also are objects that records name besides, by host.
	also map[string]folder.ObjectRef

	writtenErr, commitsErr, statusesErr error
}

func (r *repository) ReadOwner(ctx context.Context, _ delivery.Owner, wanted folder.Trees) (gitops.OwnerSnapshot, error) {
	if err := cmpErr(ctx.Err(), r.writtenErr); err != nil {
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
		if also, has := r.also[key.Host]; has && key.DeploymentTarget == "web-main" {
			record := written.Records[key]
			record.Objects = append(record.Objects, also)
			written.Records[key] = record
		}
	}
	return written, nil
}

func cmpErr(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *repository) FindCommits(ctx context.Context, _ delivery.Owner, ids []string, want folder.Trees) (map[string]gitops.ReportedCommit, error) {
	if err := cmpErr(ctx.Err(), r.commitsErr); err != nil {
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
		found[id] = gitops.ReportedCommit{ID: id, Time: asked.Add(-time.Hour), Trees: trees}
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
	r.creators = query.Creators
	for i := range min(limit, len(r.statuses)) {
		if enough(r.statuses[:i+1]) {
			return r.statuses[:i+1], r.statusesErr
		}
	}
	return r.statuses[:min(limit, len(r.statuses))], r.statusesErr
}

// question is about clusters of the types argo and flux, which both have two deployment targets.
func question(types map[string]string) compliance.Question {
	q := compliance.Question{
		Owner:    delivery.Owner{Name: "dev", Location: folder.Location{URL: "http://127.0.0.1:13000/flotadmin/gitops.git", Branch: "dev"}},
		Time:     asked,
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
	for name, of := range types {
		reconciler := map[string]string{"argo": "argocd", "flux": "flux"}[of]
		q.Clusters[name] = compliance.FleetCluster{Type: of, Reconciler: reconciler}
	}
	return q
}

// api is an API server that has the objects of a moment.
func api(t *testing.T, moment string, change func(map[string]any)) kube.Cluster {
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
	return server(t, func(w http.ResponseWriter, r *http.Request) {
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

// without is an API server that does not let anybody list one resource.
func without(t *testing.T, all kube.Cluster, resource string) kube.Cluster {
	t.Helper()
	return instead(t, all, resource, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Forbidden","message":"no","code":403}`)
	})
}

func server(t *testing.T, handler http.HandlerFunc) kube.Cluster {
	t.Helper()
	s := httptest.NewUnstartedServer(handler)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
	return kube.Cluster{Host: s.URL, ClusterCACertificate: string(certificate), Token: token}
}

// said is a verdict, and a part of the reason.
type said struct {
	verdict verdict.Verdict
	reason  string
}

func check(t *testing.T, answer *compliance.Answer, want map[string]said) {
	t.Helper()
	if len(answer.Result.Clusters) != len(want) {
		t.Errorf("there are %d clusters, want %d", len(answer.Result.Clusters), len(want))
	}
	for _, c := range answer.Result.Clusters {
		if is := want[c.Name]; c.Verdict != is.verdict || !strings.Contains(c.Message, is.reason) {
			t.Errorf("%s is %s: %s; want %s: %s", c.Name, c.Verdict, c.Message, is.verdict, is.reason)
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

func mustAsk(t *testing.T, r *repository, q compliance.Question) *compliance.Answer {
	t.Helper()
	answer, err := compliance.Evaluate(t.Context(), r, q)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestWhatRunsIsReadFromClusters(t *testing.T) {
	t.Parallel()
	const revision = "70bd5d43ff21c6e481072379cf5574f77cbe4509"
	q := question(map[string]string{"argo-1": "argo", "argo-2": "argo"})
	q.Feedback.Clusters = &compliance.Clusters{
		Reach: map[string]kube.Cluster{"argo-1": api(t, "2-first-deploy-not-ready", nil), "argo-2": {Host: "https://127.0.0.1:1"}},
	}
	answer := mustAsk(t, &repository{tip: newer, commits: map[string]string{ready: treeA, newer: treeA}}, q)
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

func TestClustersAreAskedAndNoneOfThemFailsTheQuestion(t *testing.T) {
	t.Parallel()
	q := question(map[string]string{
		"argo-1": "argo", "flux-1": "flux", "flux-busy": "flux", "flux-dead": "flux", "flux-refuses": "flux", "flux-forbids": "flux",
		"flux-narrow": "flux", "flux-garbage": "flux", "flux-bare": "flux", "flux-stranger": "flux", "flux-waiting": "flux", "flux-half": "flux",
	})
	refuse := func(code int) kube.Cluster {
		return server(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no, %s","code":%d}`, token, code)
		})
	}
	q.Feedback.Clusters = &compliance.Clusters{
		Waiting: map[string]bool{"flux-waiting": true},
		Reach: map[string]kube.Cluster{
			"argo-1": api(t, "1-ready", nil), "flux-1": api(t, "1-ready", nil), "flux-busy": api(t, "3-new-commit-waits", nil),
			"flux-narrow":  without(t, api(t, "1-ready", nil), "gitrepositories"),
			"flux-dead":    {Host: "https://127.0.0.1:1", Token: token},
			"flux-refuses": refuse(http.StatusUnauthorized), "flux-forbids": refuse(http.StatusForbidden),
			"flux-garbage": server(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>hello "+token) }),
			"flux-bare": server(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/version" {
					http.NotFound(w, r)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"gitVersion":"v1.36.3"}`)
			}),
			"flux-half": server(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"kind":"KustomizationList","apiVersion":"kustomize.toolkit.fluxcd.io/v1","metadata":{},"items":[{"metad`)
			}),
			"not-of-the-fleet": {Host: "https://127.0.0.1:1"},
		},
	}
	answer := mustAsk(t, &repository{tip: newer, commits: map[string]string{ready: treeA, newer: treeA}}, q)
	check(t, answer, map[string]said{
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
		t.Errorf("not asked: %s", got)
	}
	// Another content is wanted.
	answer = mustAsk(t, &repository{tip: newer, commits: map[string]string{ready: treeA, newer: treeB}}, q)
	if got := answer.Result.Clusters[1]; got.Name != "flux-1" || got.Verdict != verdict.Behind || got.Commit != ready {
		t.Errorf("%+v", got.Status)
	}
}

func TestAHubSpeaksOfTheClustersThatItDeploysTo(t *testing.T) {
	t.Parallel()
	named := func(object map[string]any) {
		if object["kind"] == "Application" {
			for _, at := range []map[string]any{object["spec"].(map[string]any), object["status"].(map[string]any)["sync"].(map[string]any)["comparedTo"].(map[string]any)} {
				at["destination"].(map[string]any)["name"] = "argo-1"
			}
		}
	}
	q := question(map[string]string{"argo-1": "argo", "argo-2": "argo"})
	q.Feedback.Hub = &compliance.Hub{Name: "hub", Known: true, Reach: api(t, "1-ready", named)}
	r := &repository{tip: ready, commits: map[string]string{ready: treeA}}
	check(t, mustAsk(t, r, q), map[string]said{
		"argo-1": {verdict.Ready, ""}, "argo-2": {verdict.Unknown, "nothing on the cluster follows"},
	})
	q.Feedback.Hub = &compliance.Hub{Name: "hub", Known: true, Reach: kube.Cluster{Host: "https://127.0.0.1:1", Token: token}}
	check(t, mustAsk(t, r, q), map[string]said{"argo-1": {verdict.Unknown, `the hub "hub": `}, "argo-2": {verdict.Unknown, `the hub "hub": `}})
	q.Feedback.Hub.Known = false
	check(t, mustAsk(t, r, q), map[string]said{
		"argo-1": {verdict.Unknown, "is not known yet"}, "argo-2": {verdict.Unknown, "is not known yet"},
	})
}

func status(cluster string, state forge.StatusState, message string) forge.Status {
	return forge.Status{Context: "flotilla/" + cluster, State: state, Description: message, Time: asked.Add(-time.Minute)}
}

func TestCommitStatusesAreReadUntilEveryClusterWasHeard(t *testing.T) {
	t.Parallel()
	contexts, err := observe.ParseContext("flotilla/{cluster}")
	if err != nil {
		t.Fatal(err)
	}
	r := &repository{tip: newer, commits: map[string]string{newer: treeB, ready: treeA}, statuses: []delivery.CommitStatuses{
		{Commit: newer, Statuses: []forge.Status{
			status("flux-1", forge.Success, ""), status("flux-2", forge.Failure, "no space"), status("flux-3", forge.Pending, "wait"),
			{Context: "ci/test", State: forge.Failure}, status("stranger", forge.Success, ""),
		}},
		{Commit: ready, Statuses: []forge.Status{
			status("flux-1", forge.Failure, "old"), status("flux-2", forge.Success, ""), status("flux-4", forge.Success, ""),
		}},
	}}
	q := question(map[string]string{"flux-1": "flux", "flux-2": "flux", "flux-3": "flux", "flux-4": "flux", "flux-5": "flux"})
	q.Feedback.Statuses = &compliance.Statuses{Contexts: contexts, Limit: 10}
	want := map[string]said{
		"flux-1": {verdict.Ready, ""},
		"flux-2": {verdict.Failed, "commit 2222222 cannot be applied: no space"},
		"flux-3": {verdict.Behind, "commit 2222222 is being applied: wait"},
		"flux-4": {verdict.Behind, "has commit 07fb322"},
		"flux-5": {verdict.Unknown, "there is no report about this cluster"},
	}
	answer := mustAsk(t, r, q)
	check(t, answer, want)
	if answer.Statuses != nil {
		t.Error(answer.Statuses)
	}
	// What was heard before the Git host stopped answering counts.
	r.statusesErr = errors.New("the Git host answers no more")
	answer = mustAsk(t, r, q)
	check(t, answer, want)
	if answer.Statuses == nil {
		t.Error("nobody is told that the Git host has stopped answering")
	}
	q.Feedback.Statuses.Limit = 1
	want["flux-4"] = want["flux-5"]
	check(t, mustAsk(t, r, q), want)
}

// A token that may set statuses may set those of every cluster: whose count is said by creators.
func TestStatusesOfOtherAccountsDoNotCount(t *testing.T) {
	t.Parallel()
	contexts, err := observe.ParseContext("flotilla/{cluster}/{host}")
	if err != nil {
		t.Fatal(err)
	}
	by := func(creator, subject string, state forge.StatusState) forge.Status {
		return forge.Status{Context: "flotilla/" + subject, State: state, Time: asked.Add(-time.Minute), Creator: creator}
	}
	bots := compliance.Creators{ByCluster: map[string]string{"flux-1": "bot-1", "flux-2": "bot-2", "flux-3": "bot-3"}}
	one := compliance.Creators{All: "bot-1"}
	foreign := func(subject, by string) said {
		return said{verdict.Unknown, `status "flotilla/` + subject + `" of commit 2222222 is by ` + by}
	}
	good := func(cluster, creator string) []forge.Status {
		return []forge.Status{by(creator, cluster+"/cluster", forge.Success), by(creator, cluster+"/cluster-type", forge.Success)}
	}
	for name, test := range map[string]struct {
		creators compliance.Creators
		newest   []forge.Status
		older    []forge.Status
		cluster  string
		want     said
	}{
		"nobody is named":                 {compliance.Creators{}, good("flux-1", "mallory"), nil, "flux-1", said{verdict.Ready, ""}},
		"its own":                         {bots, good("flux-2", "bot-2"), nil, "flux-2", said{verdict.Ready, ""}},
		"its own in other case":           {bots, good("flux-2", "BOT-2"), nil, "flux-2", said{verdict.Ready, ""}},
		"a letter that only looks alike":  {compliance.Creators{All: "k"}, good("flux-1", "\u212a"), nil, "flux-1", foreign("flux-1/cluster", "\"\u212a\", and only those by \"k\" count")},
		"that of another cluster":         {bots, good("flux-2", "bot-1"), nil, "flux-2", foreign("flux-2/cluster", `"bot-1", and only those by "bot-2" count for this cluster`)},
		"a failure of another":            {bots, []forge.Status{by("bot-1", "flux-2/cluster-type", forge.Failure)}, nil, "flux-2", foreign("flux-2/cluster-type", `"bot-1"`)},
		"a deleted account":               {bots, good("flux-2", ""), nil, "flux-2", foreign("flux-2/cluster", `an unknown account, and only those by "bot-2"`)},
		"no account for the cluster":      {bots, good("flux-4", "bot-1"), nil, "flux-4", foreign("flux-4/cluster", `"bot-1", and creators has no account for this cluster`)},
		"one for all":                     {one, good("flux-2", "bot-1"), nil, "flux-2", said{verdict.Ready, ""}},
		"one for all, and another":        {one, good("flux-2", "bot-2"), nil, "flux-2", foreign("flux-2/cluster", `"bot-2"`)},
		"an old one of another":           {bots, good("flux-2", "bot-2"), good("flux-2", "bot-1"), "flux-2", said{verdict.Ready, ""}},
		"an old one of its own":           {bots, good("flux-2", "bot-1"), good("flux-2", "bot-2"), "flux-2", foreign("flux-2/cluster", `"bot-1"`)},
		"beside another context":          {bots, append(good("flux-2", "bot-2"), by("bot-1", "flux-2/cluster-type/x", forge.Success)), nil, "flux-2", said{verdict.Ready, ""}},
		"of the folder of the cluster":    {bots, append(good("flux-2", "bot-2")[1:], by("bot-1", "flux-2/cluster", forge.Failure)), nil, "flux-2", said{verdict.Ready, ""}},
		"of another cluster, of this one": {bots, append(good("flux-2", "bot-2"), by("bot-2", "flux-1/cluster-type", forge.Failure)), nil, "flux-2", said{verdict.Ready, ""}},
	} {
		r := &repository{tip: newer, commits: map[string]string{newer: treeB, ready: treeA}, statuses: []delivery.CommitStatuses{
			{Commit: newer, Statuses: test.newest}, {Commit: ready, Statuses: test.older},
		}}
		q := question(map[string]string{test.cluster: "flux"})
		q.Feedback.Statuses = &compliance.Statuses{Contexts: contexts, Limit: 10, Creators: test.creators}
		t.Run(name, func(t *testing.T) { check(t, mustAsk(t, r, q), map[string]said{test.cluster: test.want}) })
		if r.creators != test.creators.IsSet() {
			t.Errorf("%s: the creators are asked for: %v", name, r.creators)
		}
	}
}

// Flux gives Bitbucket a hash of the context, and the same name for all clusters.
func TestCommitStatusesAreFoundByTheKeyOfTheirContext(t *testing.T) {
	t.Parallel()
	keyed := func(context string, state forge.StatusState, message string) forge.Status {
		hash := sha1.Sum([]byte(context))
		return forge.Status{
			Context: "kustomization/flotilla-cluster", Key: hex.EncodeToString(hash[:]), State: state, Description: message, Time: asked.Add(-time.Minute),
		}
	}
	r := &repository{
		tip:     newer,
		commits: map[string]string{newer: treeB},
		statuses: []delivery.CommitStatuses{{Commit: newer, Statuses: []forge.Status{
			keyed("flotilla/flux-1/cluster", forge.Success, ""), keyed("flotilla/flux-1/cluster-type", forge.Success, ""),
			keyed("flotilla/flux-2/cluster", forge.Success, ""), keyed("flotilla/flux-2/cluster-type", forge.Failure, "no space"),
			keyed("flotilla/stranger/cluster", forge.Failure, ""), keyed("ci/flux-5", forge.Failure, ""),
			{Context: "flotilla/flux-3", Key: "BUILD-1", State: forge.Failure, Description: "by name", Time: asked.Add(-time.Minute)},
		}}},
	}
	q := question(map[string]string{"flux-1": "flux", "flux-2": "flux", "flux-3": "flux", "flux-5": "flux"})
	q.Feedback.Statuses = &compliance.Statuses{Contexts: observe.DefaultContexts("dev"), Limit: 10}
	check(t, mustAsk(t, r, q), map[string]said{
		"flux-1": {verdict.Ready, ""},
		"flux-2": {verdict.Failed, "commit 2222222 cannot be applied: no space"},
		"flux-3": {verdict.Failed, "commit 2222222 cannot be applied: by name"},
		"flux-5": {verdict.Unknown, "there is no report about this cluster"},
	})
}

func TestWhatIsBelievedFirstIsWhoHasSomethingToSay(t *testing.T) {
	t.Parallel()
	q := question(map[string]string{"flux-1": "flux", "flux-2": "flux", "flux-3": "flux"})
	q.Feedback.Clusters = &compliance.Clusters{Reach: map[string]kube.Cluster{
		"flux-1": api(t, "1-ready", nil), "flux-2": {Host: "https://127.0.0.1:1"}, "flux-3": {Host: "https://127.0.0.1:1"},
	}}
	q.Feedback.Reports = []observe.ExternalReport{
		{Cluster: "flux-1", Commit: gone, Verdict: verdict.Ready},
		{Cluster: "flux-2", Commit: gone, Verdict: verdict.Ready, Since: asked.Add(-time.Hour)},
		{Cluster: "flux-2", Commit: ready, Verdict: verdict.Ready, Since: asked.Add(-time.Minute)},
		{Cluster: "flux-3", Message: "its metrics are gone"},
	}
	r := &repository{tip: ready, commits: map[string]string{ready: treeA}}
	check(t, mustAsk(t, r, q), map[string]said{
		"flux-1": {verdict.Ready, ""}, "flux-2": {verdict.Ready, ""}, "flux-3": {verdict.Unknown, "API server"},
	})
	q.Feedback = compliance.Feedback{
		Reports: []observe.ExternalReport{{Cluster: "flux-1", Message: "its metrics are gone"}, {Cluster: "flux-2", Commit: ready}},
	}
	check(t, mustAsk(t, r, q), map[string]said{
		"flux-1": {verdict.Unknown, "its metrics are gone"}, "flux-2": {verdict.Unknown, "does not say whether it is ready"},
		"flux-3": {verdict.Unknown, "there is no report"},
	})
	q.Feedback = compliance.Feedback{}
	check(t, mustAsk(t, r, q), map[string]said{
		"flux-1": {
			verdict.Unknown,
			"`feedback` is empty",
		}, "flux-2": {verdict.Unknown, "`feedback` is empty"}, "flux-3": {verdict.Unknown, "`feedback` is empty"},
	})
}

func TestARepositoryThatCannotBeReadIsNoError(t *testing.T) {
	t.Parallel()
	q := question(map[string]string{"flux-1": "flux"})
	q.Feedback.Reports = []observe.ExternalReport{{Cluster: "flux-1", Commit: ready, Verdict: verdict.Ready}}
	for name, test := range map[string]struct {
		r      *repository
		reason string
		fails  bool
	}{
		"there is none":             {&repository{writtenErr: git.ErrNotFound}, "the GitOps repository does not exist", true},
		"it refuses":                {&repository{writtenErr: git.ErrUnauthorized}, "the GitOps repository refuses the credentials", true},
		"it is down":                {&repository{writtenErr: git.ErrUnreachable}, "the GitOps repository cannot be read", true},
		"it has no branch":          {&repository{}, "the branch does not exist yet", false},
		"it goes down in between":   {&repository{tip: newer, commits: map[string]string{newer: treeA}, commitsErr: git.ErrUnreachable}, "its trees cannot be read", true},
		"it does not have a commit": {&repository{tip: newer, commits: map[string]string{newer: treeA}}, "the branch does not have this commit", false},
	} {
		answer := mustAsk(t, test.r, q)
		check(t, answer, map[string]said{"flux-1": {verdict.Unknown, test.reason}})
		if (answer.Repository != nil) != test.fails {
			t.Errorf("%s: %v", name, answer.Repository)
		}
	}
	q.Offline = "not yet"
	check(t, mustAsk(t, nil, q), map[string]said{"flux-1": {verdict.Unknown, "not yet"}})
}

func TestOnlyTheEndOfTheQuestionIsAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q := question(map[string]string{"flux-1": "flux"})
	if _, err := compliance.Evaluate(ctx, &repository{tip: newer}, q); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	q.Offline = "not yet"
	if _, err := compliance.Evaluate(ctx, nil, q); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
