package provider_test

import (
	"fmt"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/resource/schema"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/reconcile"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const reconcileAction = "flotilla_reconcile"

// applyFollowers creates a namespace with a GitRepository of Flux and an Application of Argo CD that read the repository.
func applyFollowers(t *testing.T, server *kubetest.Server, namespace, url string) {
	t.Helper()
	server.Apply(t, fmt.Sprintf(`
apiVersion: v1
kind: Namespace
metadata: {name: %[1]s}
---
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {name: flotilla, namespace: %[1]s}
spec: {interval: 1h, url: %[2]q, ref: {branch: dev}}
---
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: flotilla-cluster, namespace: %[1]s}
spec: {project: default, destination: {name: in-cluster}, source: {repoURL: %[2]q, targetRevision: dev, path: clusters/edge-1}}
`, namespace, url))
}

// annotation returns an annotation of an object, or "".
func annotation(t *testing.T, server *kubetest.Server, apiVersion, kind, namespace, name, key string) string {
	t.Helper()
	return server.Get(t, apiVersion, kind, namespace, name).GetAnnotations()[key]
}

func TestAgentsAreAskedToLook(t *testing.T) {
	acceptancetest.Only(t)
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	const namespace, url = "provider-reconcile", "https://git.example.com/reconcile/gitops"
	applyFollowers(t, server, namespace, url)
	w := providertest.New(startProvider)
	configuration := providertest.Configuration{Provider: map[string]any{"clusters": map[string]any{
		"edge-1": connectionTo(
			server,
		), "dead": map[string]any{"host": "https://127.0.0.1:1", "token": "canary-t0ken-4714"}, "waiting": map[string]any{"host": providertest.Unknown{}},
	}}}
	arguments := func(clusters []any, further map[string]any) map[string]any {
		attributes := map[string]any{"clusters": clusters, "gitops_repo": map[string]any{"url": url + ".git", "branch": "dev"}}
		for name, value := range further {
			attributes[name] = value
		}
		return attributes
	}
	requested := func() string {
		return annotation(t, server, "source.toolkit.fluxcd.io/v1", "GitRepository", namespace, "flotilla", "reconcile.fluxcd.io/requestedAt")
	}

	// Unreachable clusters are named. The third cluster is asked all the same.
	progress, diags := w.Invoke(t.Context(), configuration, reconcileAction, arguments([]any{"dead", "edge-1", "waiting"}, nil))
	if diags.Err() != nil || !diags.Has("Agents were not asked") || strings.Contains(diags.String(), "canary") ||
		!strings.Contains(
			diags.String(),
			"dead: the API server cannot be reached",
		) || !strings.Contains(diags.String(), "waiting: it is not known yet how it is reached") || strings.Contains(diags.String(), "edge-1:") {
		t.Errorf("the messages about three clusters are %s", diags)
	}
	if want := []string{"edge-1: asked GitRepository " + namespace + "/flotilla"}; !slices.Equal(progress, want) {
		t.Errorf("the progress is %q, want %q", progress, want)
	}
	first := requested()
	if first == "" {
		t.Error("nothing was asked")
	}

	// A silent cluster gets ten seconds and does not delay the others.
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	configuration.Provider["clusters"].(map[string]any)["deaf"] = map[string]any{"host": "http://" + silent.Addr().String()}
	if progress, diags := w.Invoke(t.Context(), configuration, reconcileAction, arguments([]any{"deaf", "edge-1"}, nil)); diags.Err() != nil ||
		len(progress) != 1 ||
		!strings.Contains(diags.String(), "deaf: ") ||
		!strings.Contains(diags.String(), "within 10s") {
		t.Errorf("with a silent cluster, the progress is %q, and the messages are %s", progress, diags)
	}
	first = requested()

	// Each call writes a new request.
	if _, diags := w.Invoke(t.Context(), configuration, reconcileAction, arguments([]any{"edge-1"}, map[string]any{"reconciler": "flux"})); len(
		diags,
	) > 0 ||
		requested() == first {
		t.Errorf("the second request is %q, the first was %q: %s", requested(), first, diags)
	}
	for _, reconciler := range []string{"argocd", "argocd-hub"} {
		progress, diags := w.Invoke(t.Context(), configuration, reconcileAction, arguments([]any{"edge-1"}, map[string]any{"reconciler": reconciler}))
		if want := []string{"edge-1: asked Application " + namespace + "/flotilla-cluster"}; len(diags) > 0 || !slices.Equal(progress, want) {
			t.Errorf("%s: the progress is %q, and the messages are %s", reconciler, progress, diags)
		}
		if got := annotation(t, server, "argoproj.io/v1alpha1", "Application", namespace, "flotilla-cluster", "argocd.argoproj.io/refresh"); got != "normal" {
			t.Errorf("%s: the annotation is %q", reconciler, got)
		}
	}

	for _, c := range []struct {
		clusters []any
		further  map[string]any
		summary  string
		at       string
		detail   string
	}{
		{[]any{"dead"}, nil, "Agents were not asked", "clusters", "dead: the API server cannot be reached"},
		{[]any{"edge-1"}, map[string]any{"gitops_repo": map[string]any{"url": url, "branch": "nobody"}}, "Agents were not asked", "clusters", `edge-1: nothing follows the branch: no GitRepository there reads branch "nobody" of gitops_repo`},
		{[]any{"edge-2"}, nil, "Provider does not know this cluster", "clusters", `The provider's clusters has no entry "edge-2"; did you mean "edge-1"?`},
		{[]any{"edge-1"}, map[string]any{"reconciler": "fleet"}, "Agent cannot be asked", "reconciler", "Rancher Fleet looks when its polling interval has passed"},
		{[]any{"edge-1"}, map[string]any{"reconciler": "config-sync"}, "Agent cannot be asked", "reconciler", "Config Sync offers no way to ask it"},
		{[]any{"edge-1"}, map[string]any{"reconciler": "fluxx"}, "Invalid reconciler", "reconciler", `"fluxx" is none of argocd, argocd-hub, flux`},
		{[]any{"edge-1"}, map[string]any{"gitops_repo": map[string]any{"url": url, "brunch": "dev"}}, "Invalid GitOps repository", "gitops_repo", "brunch"},
	} {
		_, diags := w.Invoke(t.Context(), configuration, reconcileAction, arguments(c.clusters, c.further))
		if diags.Err() == nil || !diags.Has(c.summary) || diags[0].At != fmt.Sprintf("AttributeName(%q)", c.at) ||
			!strings.Contains(diags.String(), c.detail) ||
			!strings.Contains(diags.String(), "/troubleshooting.md#") {
			t.Errorf("%v, clusters %v: got %s, want %s at %s: %s", c.further, c.clusters, diags, c.summary, c.at, c.detail)
		}
	}
	if _, diags := w.Invoke(t.Context(), configuration, reconcileAction, map[string]any{"clusters": providertest.Unknown{}, "gitops_repo": providertest.Unknown{}, "reconciler": "fleet"}); !diags.Has(
		"Agent cannot be asked",
	) {
		t.Errorf("with unknown arguments, the messages are %s", diags)
	}
}

// The example asks the cluster after each change, and only then.
func TestActionsAfterAnUpdate(t *testing.T) {
	t.Parallel()
	acceptancetest.Only(t)
	tool := allTools(t)["terraform"]
	if !isTerraform(t, tool, 14) {
		t.Skip("Terraform before 1.14, and any other tool, has no actions")
	}
	server := kubetest.Start(t, kubetest.Options{Agents: true})
	folder := t.TempDir()
	repository, kubeconfig := filepath.ToSlash(filepath.Join(folder, "gitops.git")), filepath.Join(folder, "edge-1.kubeconfig")
	writeFile(t, kubeconfig, server.Kubeconfig())
	example := readFile(t, filepath.Join("..", "..", "examples", "actions", reconcileAction, "action.tf"))
	example = kubeconfigPattern.ReplaceAllLiteralString(
		strings.ReplaceAll(example, `"gitops.git"`, strconv.Quote(repository)),
		"file("+strconv.Quote(filepath.ToSlash(kubeconfig))+")",
	)
	applyFollowers(t, server, "provider-actions", "ssh://"+repository) // the same path in another notation
	w := newWorkdir(t, tool, map[string]string{"main.tf": example, "required_providers.tf": requiredProviders})
	seen := []string{""}
	for _, step := range []struct {
		level       string
		wantRequest bool
	}{{"info", true}, {"info", false}, {"debug", true}} {
		w.run("apply", "-auto-approve", "-input=false", "-var=log_level="+step.level)
		requested := annotation(
			t,
			server,
			"source.toolkit.fluxcd.io/v1",
			"GitRepository",
			"provider-actions",
			"flotilla",
			"reconcile.fluxcd.io/requestedAt",
		)
		if last := seen[len(seen)-1]; (requested != last) != step.wantRequest {
			t.Errorf("%s: the request is %q, the former was %q", step.level, requested, last)
		}
		seen = append(seen, requested)
	}
	w.run("apply", "-auto-approve", "-input=false", "-var=log_level=debug", "-invoke=action.flotilla_reconcile.dev")
	if requested := annotation(t, server, "source.toolkit.fluxcd.io/v1", "GitRepository", "provider-actions", "flotilla", "reconcile.fluxcd.io/requestedAt"); requested == seen[len(seen)-1] {
		t.Error("without a change, -invoke asks nobody")
	}
}

// The generator of the other pages does not know the actions of Terraform 1.14. This page is written by hand.
func TestTheActionPageMatchesItsSchema(t *testing.T) {
	t.Parallel()
	page := readFile(t, filepath.Join("..", "..", "templates", "actions", "reconcile.md"))
	definition := reconcile.Definition()
	wants := []string{
		definition.MarkdownDescription,
		strings.TrimSpace(readFile(t, filepath.Join("..", "..", "examples", "actions", reconcileAction, "action.tf"))),
	}
	for name, attribute := range definition.Attributes {
		requirement := map[bool]string{true: "Required", false: "Optional"}[attribute.IsRequired()]
		kind := map[bool]string{true: "List of String", false: "String"}[name == "clusters"]
		if _, isDynamic := attribute.(schema.DynamicAttribute); isDynamic {
			kind = "Dynamic"
		}
		_, section, _ := strings.Cut(page, "### "+requirement+"\n")
		section, _, _ = strings.Cut(section, "\n###")
		if want := fmt.Sprintf("- `%s` (%s) %s\n", name, kind, attribute.GetMarkdownDescription()); !strings.Contains(section, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
	for _, want := range wants {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %s", want)
		}
	}
}
