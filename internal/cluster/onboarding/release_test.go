package onboarding_test

import (
	"context"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// A destroy that keeps objects still removes all credentials, even the one in a Secret of others: Argo CD's notifications
// read their credential there.
func TestADestroyThatKeepsLeavesNoCredentialInSecretsOfOthers(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	server.Apply(t, `apiVersion: v1
kind: Namespace
metadata: {name: token-argocd}
---
apiVersion: v1
kind: Secret
metadata: {name: argocd-notifications-secret, namespace: token-argocd}
stringData: {others: theirs}
`)
	config := settings("token-argocd")
	config.Reconciler = "argocd"
	config.Feedback = &agent.Reporting{Forge: "gitea", Token: "canary-t0ken-4713"}
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: renderObjects(t, config)})
		data := func() map[string]any {
			secret := server.Get(t, "v1", "Secret", "token-argocd", "argocd-notifications-secret")
			data, _ := secret.Object["data"].(map[string]any)
			return data
		}
		if data()["flotilla-token"] == nil {
			t.Fatalf("the Secret has %v", data())
		}
		removal := onboarding.Removal{Name: "store-17", Records: result.Records, UID: result.UID}
		if notes, err := removeObjects(ctx, cluster, removal); err != nil || len(notes) > 0 {
			t.Errorf("the notes are %q: %v", notes, err)
		}
		if left := data(); len(left) != 1 || left["others"] == nil {
			t.Errorf("the Secret of others has %d entries, want only its own", len(left))
		}
	})
}

// The agent's own manifests may contain the Secret for notifications. A destroy keeps the manifests and removes the credential.
func TestADestroyThatKeepsLeavesNoCredentialInTheAgentsOwnManifests(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	config := settings("token-installed")
	config.Reconciler = "argocd"
	config.Feedback = &agent.Reporting{Forge: "gitea", Token: "canary-t0ken-4713"}
	config.Install = []agent.Text{{Path: "install", Text: `apiVersion: v1
kind: Secret
metadata: {name: argocd-notifications-secret}
stringData: {others: theirs}
`}}
	withClient(t, server, time.Minute, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		result := mustApply(ctx, t, cluster, onboarding.Wanted{Objects: renderObjects(t, config)})
		data := func() map[string]any {
			data, _ := server.Get(t, "v1", "Secret", "token-installed", "argocd-notifications-secret").Object["data"].(map[string]any)
			return data
		}
		if len(data()) != 2 {
			t.Fatalf("the Secret has %d entries", len(data()))
		}
		removal := onboarding.Removal{Name: "store-17", Records: result.Records, UID: result.UID}
		if notes, err := removeObjects(ctx, cluster, removal); err != nil || len(notes) > 0 {
			t.Errorf("the notes are %q: %v", notes, err)
		}
		if left := data(); len(left) != 1 || left["others"] == nil {
			t.Errorf("the Secret has %d entries, want only its own", len(left))
		}
	})
}
