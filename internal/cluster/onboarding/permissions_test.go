package onboarding_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/agenttest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// asPermitted calls do as a new user with the given permissions and no others. It waits until the API grants them.
func asPermitted(
	t *testing.T, server *kubetest.Server, user string, all []agenttest.Permission, do func(ctx context.Context, as onboarding.ClusterAPI),
) {
	t.Helper()
	certificate, key := server.Permit(t, user, agenttest.Rules(all))
	server.AwaitPermission(t, user, "", all[0].Group, all[0].Resource, all[0].Verbs[0])
	reach := kube.Cluster{Host: server.Host, ClusterCACertificate: server.CA, ClientCertificate: certificate, ClientKey: key}
	options := kube.QueryOptions{Deadline: 2 * time.Minute}
	err := kube.QueryOne(t.Context(), reach, options, func(ctx context.Context, c *kube.ClusterClient) error {
		do(ctx, withoutControllers{c})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// withoutControllers removes the finalizers that only agents would remove.
type withoutControllers struct{ onboarding.ClusterAPI }

func (w withoutControllers) Delete(ctx context.Context, ref kube.Ref, uid string) error {
	err := w.ClusterAPI.Delete(ctx, ref, uid)
	if err == nil && (ref.Kind == "Application" || ref.Kind == "RootSync") {
		_, err = w.Patch(ctx, ref, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	}
	return err
}

// withoutVerb returns the permissions without one verb.
func withoutVerb(all []agenttest.Permission, at int, verb string) []agenttest.Permission {
	rest := slices.Clone(all)
	rest[at].Verbs = slices.DeleteFunc(slices.Clone(rest[at].Verbs), func(one string) bool { return one == verb })
	if len(rest[at].Verbs) == 0 {
		rest = slices.Delete(rest, at, at+1)
	}
	return rest
}

const installedKind = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.%[1]s.example.com}
spec:
  group: %[1]s.example.com
  names: {kind: Widget, listKind: WidgetList, plural: widgets, singular: widget}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`

// generatedObjects are objects that agents create from their roots.
var generatedObjects = map[string]struct{ maker, text, resource string }{
	"config-sync": {"RootSync flotilla-cluster", `{apiVersion: kpt.dev/v1alpha1, kind: ResourceGroup,
metadata: {name: flotilla-cluster, namespace: %s}, spec: {}}`, "resourcegroups"},
	"fleet": {"GitRepo flotilla-cluster", `{apiVersion: fleet.cattle.io/v1alpha1, kind: Bundle, metadata: {name: made, namespace: %s,
labels: {fleet.cattle.io/repo-name: flotilla-cluster, fleet.cattle.io/commit: "` + awaitedCommit + `"}}, spec: {}}`, "bundles"},
	"argocd-hub": {"ApplicationSet flotilla-dev-type", `{apiVersion: argoproj.io/v1alpha1, kind: Application,
metadata: {name: made, namespace: %s}, spec: {project: x, destination: {name: other, namespace: x}}}`, "applications"},
}

// TestThePermissionsAreEnoughAndNeeded tests for each use that the permissions in the guide suffice and that every verb is
// needed. The second half runs for Flux, and for all agents in `make acceptance`.
func TestThePermissionsAreEnoughAndNeeded(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true})
	for _, name := range []string{"argocd", "argocd-hub", "config-sync", "fleet", "flux"} {
		for _, use := range agenttest.Uses {
			permissions := slices.DeleteFunc(agenttest.Permissions(name), func(one agenttest.Permission) bool {
				isRegistered := one.Use == agenttest.Registration && use != agenttest.Registered
				return one.Use != agenttest.Always && one.Use != use && !isRegistered
			})
			if !slices.ContainsFunc(permissions, func(one agenttest.Permission) bool { return one.Use == use }) {
				continue
			}
			label := strings.Trim(strings.Fields(string(use))[0], "`")
			t.Run(name+"/"+label, func(t *testing.T) {
				t.Parallel()
				namespace := strings.NewReplacer("_", "-", ".", "-").Replace("may-" + name + "-" + label)
				p := permissionTest{server: server, name: name, use: use, namespace: namespace}
				p.run(t, permissions)
			})
		}
	}
}

// permissionTest applies, awaits and removes an agent with the permissions for one use.
type permissionTest struct {
	server          *kubetest.Server
	name, namespace string
	use             agenttest.Use
	wanted          onboarding.Wanted
	removal         onboarding.Removal
}

func (p *permissionTest) run(t *testing.T, all []agenttest.Permission) {
	settings := agent.Settings{
		Cluster: "eu-1", ClusterType: "type", Reconciler: p.name, Namespace: p.namespace,
	}
	settings.Repository = folder.Location{URL: "https://git.example.com/platform/gitops", Branch: "main", Path: p.namespace}
	if p.name == "argocd-hub" {
		settings.Environment, settings.Registration = "dev", &agent.Registration{Server: "https://eu-1.example.com", Token: "t"}
	}
	switch p.use {
	case agenttest.Credentials:
		settings.Credentials.Token = "t"
	case agenttest.Registered:
		settings.Registration = &agent.Registration{Secret: "cluster-eu-1"}
		namespace := "{apiVersion: v1, kind: Namespace, metadata: {name: " + p.namespace + "}}\n---\n"
		p.server.Apply(t, namespace+fmt.Sprintf(othersSecret, p.namespace, "eu-1"))
	case agenttest.Feedback:
		settings.Feedback = &agent.Reporting{Forge: "github", Token: "t"}
	case agenttest.Install:
		settings.Install = []agent.Text{{Path: "install", Text: fmt.Sprintf(installedKind, p.namespace)}}
	}
	p.wanted.Objects = renderObjects(t, settings)
	if p.use == agenttest.Wait {
		p.wanted.Following = &onboarding.Following{Location: settings.Repository, Cluster: settings.Cluster, ClusterType: settings.ClusterType}
	}
	type variant struct {
		text string
		all  []agenttest.Permission
		user string
	}
	var variants []variant
	leavesOut := acceptancetest.All() || p.name == "flux"
	for i, one := range all {
		for _, verb := range one.Verbs {
			isTwice := slices.ContainsFunc(all, func(other agenttest.Permission) bool {
				return other.Use != one.Use && other.Resource == one.Resource && slices.Contains(other.Verbs, verb)
			})
			if one.Use == p.use && leavesOut && !isTwice {
				text := fmt.Sprintf("%s %s.%s", verb, one.Resource, one.Group)
				variants = append(variants, variant{text, withoutVerb(all, i, verb), fmt.Sprintf("%s-%d", p.namespace, len(variants))})
			}
		}
	}
	canPlan := func(v variant) (can bool) {
		asPermitted(t, p.server, v.user, v.all, func(ctx context.Context, as onboarding.ClusterAPI) { can = p.canPlan(ctx, as) })
		return can
	}
	variants = slices.DeleteFunc(variants, func(v variant) bool { return !canPlan(v) })
	if p.use != agenttest.Delete { // a dry run of an object needs its namespace
		p.server.Apply(t, "{apiVersion: v1, kind: Namespace, metadata: {name: "+p.namespace+"}}")
		variants = slices.DeleteFunc(variants, func(v variant) bool { return !canPlan(v) })
	}
	asPermitted(t, p.server, p.namespace, all, func(ctx context.Context, as onboarding.ClusterAPI) {
		p.mustApply(ctx, t, as)
		p.addGenerated(t)
		for _, v := range variants {
			asPermitted(t, p.server, v.user, v.all, func(ctx context.Context, as onboarding.ClusterAPI) {
				if p.canWait(ctx, as) && p.canRemove(ctx, as) {
					t.Errorf("everything works without the permission to %s", v.text)
				}
			})
		}
		if !p.canPlan(ctx, as) || !p.canWait(ctx, as) {
			t.Error("the objects cannot be compared or awaited")
		}
		if _, err := onboarding.Remove(ctx, as, p.removal); err != nil {
			t.Error(err)
		}
	})
}

func (p *permissionTest) canPlan(ctx context.Context, as onboarding.ClusterAPI) bool {
	look, err := onboarding.Inspect(ctx, as, p.wanted.Objects, onboarding.InspectOptions{Known: p.removal.UID, Records: p.removal.Records})
	return err == nil && len(onboarding.FindFailures(p.wanted.Objects, look)) == 0
}

func (p *permissionTest) mustApply(ctx context.Context, t *testing.T, as onboarding.ClusterAPI) {
	t.Helper()
	done, err := onboarding.Apply(ctx, as, onboarding.Wanted{Objects: p.wanted.Objects})
	if err != nil {
		t.Fatal(err)
	}
	p.removal = onboarding.Removal{Name: "eu-1", Records: done.Records, UID: done.UID, Delete: p.use == agenttest.Delete}
}

// addGenerated adds the object that the agent creates from a root, and lists an object that Flux has applied.
func (p *permissionTest) addGenerated(t *testing.T) {
	t.Helper()
	if p.use == agenttest.Delete && p.name != "flux" { // its namespace stays, because the user may not read the objects of others
		p.server.Apply(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: foreign, namespace: "+p.namespace+"}}")
	}
	for i := range p.removal.Records {
		record := &p.removal.Records[i]
		template := generatedObjects[p.name]
		isMaker := template.maker == record.Kind+" "+record.Name && (p.use == agenttest.Always || p.use == agenttest.Wait)
		if isMaker {
			object := p.server.Apply(t, fmt.Sprintf(template.text, p.namespace))[0]
			object.SetOwnerReferences([]metav1.OwnerReference{
				{APIVersion: record.APIVersion, Kind: record.Kind, Name: record.Name, UID: types.UID(record.UID)},
			})
			resource := object.GroupVersionKind().GroupVersion().WithResource(template.resource)
			objects := p.server.Client().Resource(resource).Namespace(p.namespace)
			if _, err := objects.Update(t.Context(), object, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if record.Kind == "GitRepo" && isMaker && p.use == agenttest.Wait {
			for _, name := range []kube.Ref{record.Ref, {APIVersion: record.APIVersion, Kind: "Bundle", Namespace: p.namespace, Name: "made"}} {
				live := p.server.Get(t, name.APIVersion, name.Kind, name.Namespace, name.Name)
				p.server.SetStatus(t, live, map[string]any{
					"commit": awaitedCommit, "observedGeneration": live.GetGeneration(),
					"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
				})
			}
		}
		if record.Kind == "Application" && p.use == agenttest.Wait && p.name == "argocd-hub" {
			live := p.server.Get(t, record.APIVersion, record.Kind, record.Namespace, record.Name)
			set := map[string]any{"kind": "ApplicationSet", "namespace": p.namespace, "name": "web", "status": "Synced"}
			p.server.SetStatus(t, live, map[string]any{
				"health": map[string]any{"status": "Healthy"}, "reconciledAt": "2026-11-21T20:30:00Z", "resources": []any{set},
				"sync": map[string]any{"status": "Synced", "revision": awaitedCommit, "comparedTo": live.Object["spec"]},
			})
		}
		if record.Kind == "Kustomization" && p.use == agenttest.Delete {
			live := p.server.Get(t, record.APIVersion, record.Kind, record.Namespace, record.Name)
			p.server.SetStatus(t, live, map[string]any{"inventory": map[string]any{"entries": []any{
				map[string]any{"id": p.namespace + "_web__ConfigMap", "v": "v1"},
			}}})
		}
	}
}

const awaitedCommit = "1f2e3d4c5b6a79880123456789abcdef01234567"

// canWait reports whether waiting for the cluster only ends by time, and never because an object cannot be read.
func (p *permissionTest) canWait(ctx context.Context, as onboarding.ClusterAPI) bool {
	if p.wanted.Following == nil {
		return true
	}
	limited, end := context.WithCancel(ctx)
	defer end()
	following, calls := *p.wanted.Following, 0
	following.Tip = func(context.Context) (string, error) {
		if calls++; calls == 2 {
			end()
		}
		return awaitedCommit, nil
	}
	wanted := onboarding.Wanted{Objects: p.wanted.Objects, Records: p.removal.Records, UID: p.removal.UID, Following: &following}
	_, err := onboarding.Apply(limited, as, wanted)
	var failure *onboarding.Failure
	return errors.As(err, &failure) && failure.Cause == onboarding.CauseTime && !strings.Contains(err.Error(), "cannot be read")
}

// canRemove tries a removal. The removal changes nothing if a permission is missing.
func (p *permissionTest) canRemove(ctx context.Context, as onboarding.ClusterAPI) bool {
	_, err := onboarding.Remove(ctx, as, p.removal)
	return err == nil
}
