package observe_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// The objects of External Secrets Operator 1.3. markAsDone writes the condition, the time of the request to the store, and the generation
// with a hash of labels and annotations. markAsFailed writes only the condition.
const (
	syncedSecret = `
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata: {name: web, namespace: team, generation: 2, finalizers: [externalsecrets.external-secrets.io/externalsecret-cleanup]}
spec:
  refreshInterval: 1h0m0s
  refreshPolicy: Periodic
  secretStoreRef: {kind: ClusterSecretStore, name: vault}
  target: {creationPolicy: Owner, deletionPolicy: Retain, name: web}
  data:
  - secretKey: PASSWORD
    remoteRef: {conversionStrategy: Default, decodingStrategy: None, key: prod/db, metadataPolicy: None, property: password, version: "2"}
status:
  binding: {name: web}
  conditions:
  - {type: Ready, status: "True", reason: SecretSynced, message: secret synced, lastTransitionTime: "2026-11-21T20:00:00Z"}
  refreshTime: "2026-11-21T23:00:00Z"
  syncedResourceVersion: 2-9f3c4b0d1e2a5f60718293a4b5c6d7e8f9012345678901234567890a`
	failedSecret = `
  - {type: Ready, status: "False", reason: SecretSyncedError, message: could not get secret data from provider, lastTransitionTime: "2026-11-21T22:00:00Z"}`
)

// unsealed is a SealedSecret with the status that the controller of SealedSecrets 0.40 writes.
const unsealed = `
apiVersion: bitnami.com/v1alpha1
kind: SealedSecret
metadata: {name: web, namespace: team, generation: 3}
spec:
  encryptedData: {PASSWORD: AgBy3i4OJSWK+PiTySYZZA9rO43cGDEq}
  template: {metadata: {name: web, namespace: team}}
status:
  conditions:
  - {type: Synced, status: "True", lastTransitionTime: "2026-11-21T20:00:00Z", lastUpdateTime: "2026-11-21T20:00:00Z"}
  observedGeneration: 3`

func TestVerdictsOfExternalSecretsAndSealedSecrets(t *testing.T) {
	t.Parallel()
	ready := syncedSecret[strings.Index(syncedSecret, "\n  - {type: Ready"):strings.Index(syncedSecret, "\n  refreshTime")]
	for name, test := range map[string]struct {
		object, old, by string
		asked           string
		want            verdict.Verdict
		since, reason   string
	}{
		"synced":                                    {syncedSecret, "", "", "23:30", verdict.Ready, "20:00", ""},
		"refreshed on change":                       {syncedSecret, "Periodic", "OnChange", "23:30", verdict.Ready, "23:00", ""},
		"changed after the sync":                    {syncedSecret, "generation: 2", "generation: 3", "23:30", verdict.Progressing, "20:00", "was changed after its Secret was written"},
		"a generation with the same first digit":    {syncedSecret, "generation: 2", "generation: 22", "23:30", verdict.Progressing, "20:00", "was changed after its Secret was written"},
		"never synced":                              {syncedSecret, "  syncedResourceVersion", "  other", "23:30", verdict.Progressing, "20:00", "was changed after its Secret was written"},
		"no status":                                 {syncedSecret, "status:\n", "other:\n", "23:30", verdict.Progressing, "", "has no status yet"},
		"missing in the store for a minute":         {syncedSecret, ready, failedSecret, "22:00", verdict.Progressing, "22:00", "is not ready: could not get secret data from provider; it is tried again"},
		"missing in the store for longer":           {syncedSecret, ready, failedSecret, "22:01", verdict.Failed, "22:00", "is not ready: could not get secret data from provider"},
		"deleted with the secret of the store":      {syncedSecret, "SecretSynced, message: secret synced", "SecretDeleted, message: secret deleted due to DeletionPolicy=Delete", "23:30", verdict.Failed, "20:00", "has no Secret: secret deleted due to DeletionPolicy=Delete"},
		"no Secret to merge into":                   {syncedSecret, "SecretSynced, message: secret synced", "SecretMissing, message: secret will not be created due to CreationPolicy=Merge", "23:30", verdict.Failed, "20:00", "has no Secret: secret will not be created"},
		"being deleted":                             {syncedSecret, "generation: 2,", `generation: 2, deletionTimestamp: "2026-11-21T23:20:00Z",`, "23:30", verdict.Progressing, "23:20", "is being deleted"},
		"an older version of the API":               {syncedSecret, "external-secrets.io/v1\n", "external-secrets.io/v1beta1\n", "23:30", verdict.Ready, "20:00", ""},
		"an ExternalSecret of another group":        {syncedSecret, "external-secrets.io/v1\n", "kubernetes-client.io/v1\n", "23:30", verdict.Progressing, "", "does not exist"},
		"unsealed":                                  {unsealed, "", "", "23:30", verdict.Ready, "20:00", ""},
		"sealed anew":                               {unsealed, "generation: 3}", "generation: 4}", "23:30", verdict.Progressing, "20:00", "was changed after its status was written"},
		"sealed without a status":                   {unsealed, "status:\n", "other:\n", "23:30", verdict.Progressing, "", "has no status yet"},
		"sealed for another key":                    {unsealed, `status: "True",`, `status: "False", message: no key could decrypt secret (PASSWORD),`, "20:00", verdict.Failed, "20:00", "has no Secret: no key could decrypt secret (PASSWORD)"},
		"a SealedSecret that is being deleted":      {unsealed, "generation: 3}", `generation: 3, deletionTimestamp: "2026-11-21T23:20:00Z"}`, "23:30", verdict.Progressing, "23:20", "is being deleted"},
		"a SealedSecret of another group":           {unsealed, "bitnami.com/", "example.com/", "23:30", verdict.Progressing, "", "does not exist"},
		"a changed version is missing in the store": {syncedSecret, ready + "\n  refreshTime: \"2026-11-21T23:00:00Z\"\n  syncedResourceVersion: 2-", failedSecret + "\n  refreshTime: \"2026-11-21T21:00:00Z\"\n  syncedResourceVersion: 1-", "23:30", verdict.Failed, "22:00", "could not get secret data from provider"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			object := test.object
			if test.old != "" {
				object = replaceOnce(t, object, test.old, test.by)
			}
			got := judgeSupplied(t, clockTime(t, test.asked), reconciler.Answer{Objects: parseObjects(t, strings.TrimSpace(object))}, kindOfText(test.object))
			if got.Verdict != test.want || !strings.Contains(got.Message, test.reason) || (test.reason == "") != (got.Message == "") {
				t.Errorf("%+v", got.Status)
			}
			if test.since != "" && !got.Since.Equal(clockTime(t, test.since)) {
				t.Errorf("since is %s, want %s", got.Since, test.since)
			}
		})
	}
}

// The minute of grace begins when the content changes.
func TestAFailedExternalSecretHasAMinuteForNewContent(t *testing.T) {
	t.Parallel()
	object := replaceOnce(
		t,
		syncedSecret,
		syncedSecret[strings.Index(syncedSecret, "\n  - {type: Ready"):strings.Index(syncedSecret, "\n  refreshTime")],
		failedSecret,
	)
	for asked, want := range map[string]verdict.Verdict{"23:30": verdict.Progressing, "23:31": verdict.Failed} {
		in := suppliedInput(t, clockTime(t, asked), reconciler.Answer{Objects: parseObjects(t, strings.TrimSpace(object))}, "ExternalSecret")
		in.Folders[0].Changed = clockTime(t, "23:30")
		if got := observe.Observe(in).Clusters[0].Assignments[0]; got.Verdict != want || !got.Since.Equal(clockTime(t, "23:30")) {
			t.Errorf("%s: %+v", asked, got.Status)
		}
	}
}

func TestAnUnlistedExternalSecretIsUnknown(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"the cluster has no externalsecrets.external-secrets.io": "ExternalSecret team/web cannot be read: the cluster has no externalsecrets.external-secrets.io",
		`forbidden: cannot list "externalsecrets"`:               `ExternalSecret team/web cannot be read: forbidden: cannot list "externalsecrets"`,
	} {
		got := judgeSupplied(t, clockTime(t, "23:30"), reconciler.Answer{Unlisted: map[string]string{"ExternalSecret": reason}}, "ExternalSecret")
		if got.Verdict != verdict.Unknown || got.Message != want {
			t.Errorf("%+v", got.Status)
		}
	}
	if got := judgeSupplied(t, clockTime(t, "23:30"), reconciler.Answer{}, "ExternalSecret"); got.Verdict != verdict.Progressing ||
		got.Message != "ExternalSecret team/web does not exist" {
		t.Errorf("%+v", got.Status)
	}
}

func clockTime(t *testing.T, clock string) time.Time {
	t.Helper()
	moment, err := time.Parse("2006-01-02 15:04", "2026-11-21 "+clock)
	if err != nil {
		t.Fatal(err)
	}
	return moment
}

func kindOfText(document string) string {
	_, after, _ := strings.Cut(document, "kind: ")
	kind, _, _ := strings.Cut(after, "\n")
	return kind
}

// suppliedInput returns the reports of an assignment with a ready Kustomization and an object of the given kind, which creates a Secret.
func suppliedInput(t *testing.T, asked time.Time, listed reconciler.Answer, kind string) observe.FleetReports {
	t.Helper()
	in := judgeInput(
		t,
		reconciler.Answer{
			Objects:  append(parseObjects(t, strings.TrimSpace(readyKustomization+"\n---"+readySource)), listed.Objects...),
			Unlisted: listed.Unlisted,
		},
	)
	in.Time = asked
	in.Folders[0].Objects = append(in.Folders[0].Objects, reconciler.ObjectName{Kind: kind, Namespace: "team", Name: "web"})
	return in
}

func judgeSupplied(t *testing.T, asked time.Time, listed reconciler.Answer, kind string) observe.AssignmentResult {
	t.Helper()
	return observe.Observe(suppliedInput(t, asked, listed, kind)).Clusters[0].Assignments[0]
}
