// Package agenttest lists the permissions that accounts need for agents. The guide has them as a table, and tests prove
// against a real API that they are enough and needed.
package agenttest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Use is the setting that requires a permission.
type Use string

// The uses, in the order of the table.
const (
	Always      Use = "always"
	Credentials Use = "`credentials_wo`"
	// Registration is of a cluster that Flotilla registers, Registered of one that an existing Secret registers.
	Registration Use = "`registration`"
	Registered   Use = "`registration.secret`"

	Feedback Use = "`feedback`"
	Install  Use = "`install`"
	Wait     Use = "`wait`"
	Delete   Use = "`on_destroy = \"delete\"`"
)

// Uses lists all uses.
var Uses = []Use{Always, Credentials, Registration, Registered, Feedback, Install, Wait, Delete}

// Permission lists the verbs that an account needs for a resource.
type Permission struct {
	Use             Use
	Group, Resource string
	Verbs           []string
}

// InNamespace reports whether a Role in the agent's namespace is enough.
func (p Permission) InNamespace() bool {
	return p.Use != Wait && p.Resource != "*" && p.Resource != "namespaces" && p.Resource != "customresourcedefinitions"
}

// Permissions returns the permissions to apply, compare and remove the objects of an agent; for argocd-hub, on the hub.
func Permissions(name string) []Permission {
	by, settings, found := reconciler.Named(name), permissionSettings(name), permissions{}
	found.addObjects(Always, settings)
	settings.Credentials.Token = "token"
	found.addObjects(Credentials, settings)
	settings.Credentials.Token = ""
	if by.OnHub() {
		found.add(Registered, "", "secrets", "get", "patch")
		settings.Registration = &agent.Registration{Server: "https://cluster.example.com", Token: "token"}
		found.addObjects(Registration, settings)
	}
	if by.Agent.NoFeedback == "" {
		settings.Feedback = &agent.Reporting{Forge: forge.GitHub, Token: "token"}
		found.addObjects(Feedback, settings)
	}
	if by.OnHub() {
		found.add(Always, "", "secrets", "list") // to find the clusters that share objects
	} else {
		found.add(Install, "apiextensions.k8s.io", "customresourcedefinitions", "get", "create", "patch")
	}
	found.addWait(by)
	found.add(Delete, "", "namespaces", "delete")
	found.add(Delete, "*", "*", "list")
	if slices.ContainsFunc(by.Kinds, func(kind reconciler.ObjectKind) bool {
		return kind.Is(reconciler.Follows) && kind.Removal.Inventory != nil && !kind.Removal.Waits
	}) {
		found.add(Delete, "*", "*", "get") // to wait until applied objects are gone
	}
	slices.SortStableFunc(found, func(a, b Permission) int {
		order := cmp.Compare(slices.Index(Uses, a.Use), slices.Index(Uses, b.Use))
		return cmp.Or(order, cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	order := []string{"get", "list", "create", "patch", "delete"}
	for _, one := range found {
		slices.SortFunc(one.Verbs, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	}
	return found
}

func permissionSettings(name string) agent.Settings {
	settings := agent.Settings{
		Cluster: "cluster", ClusterType: "type", Reconciler: name,
		Repository: folder.Location{URL: "https://git.example.com/platform/gitops", Branch: "main"},
	}
	if reconciler.Named(name).OnHub() {
		settings.Environment, settings.Registration = "dev", &agent.Registration{Secret: "cluster"}
	}
	return settings
}

type permissions []Permission

// add adds verbs that neither the use nor Always has yet; in all namespaces, Always has none.
func (p *permissions) add(use Use, group, resource string, verbs ...string) {
	at := -1
	for i, one := range *p {
		if one.Group != group || one.Resource != resource || one.Use != use && (one.Use != Always || use == Wait) {
			continue
		}
		verbs = slices.DeleteFunc(slices.Clone(verbs), func(verb string) bool { return slices.Contains(one.Verbs, verb) })
		if one.Use == use {
			at = i
		}
	}
	switch {
	case len(verbs) == 0:
	case at < 0:
		*p = append(*p, Permission{use, group, resource, verbs})
	default:
		(*p)[at].Verbs = append((*p)[at].Verbs, verbs...)
	}
}

// addObjects adds permissions for the objects of settings. Namespaces and others' objects stay.
func (p *permissions) addObjects(use Use, settings agent.Settings) {
	objects, problems := agent.Render(settings)
	if agent.Failed(problems) {
		panic(fmt.Sprint(problems))
	}
	for i := range objects {
		if objects[i].Partial && objects[i].GetKind() == "Secret" && use != Feedback {
			continue // Registered
		}
		group, kind := objects[i].GroupVersionKind().Group, objects[i].GetKind()
		resource, known := strings.ToLower(kind)+"s", reconciler.KindOf(group, kind)
		if known != nil {
			resource = known.Resource
		}
		p.add(use, group, resource, "get", "create", "patch")
		switch {
		case objects[i].Partial || objects[i].Stage == agent.Namespaces:
		case objects[i].Part == agent.Source && !known.Is(reconciler.Source): // a project stays with on_destroy = "keep"
			p.add(Delete, group, resource, "delete")
		default:
			p.add(use, group, resource, "delete")
		}
		if known != nil && len(known.Makes) > 0 {
			made := reconciler.KindNamed(known.Makes[0])
			p.add(use, made.Group, made.Resource, "list", "patch")
		}
	}
}

// addWait adds permissions to read whether roots and their objects are ready.
func (p *permissions) addWait(by *reconciler.Reconciler) {
	var needed []string
	for _, kind := range by.Kinds { // makers come before the kinds that they make
		isRoot := kind.Is(reconciler.Follows) || by.OnHub() && kind.Template != ""
		if isRoot && !kind.WaitsForAll || slices.Contains(needed, kind.Kind) {
			p.add(Wait, kind.Group, kind.Resource, "list")
			needed = append(needed, kind.Makes...)
		}
	}
}

// Rules returns permissions as the rules of a ClusterRole.
func Rules(all []Permission) string {
	list := []any{}
	for _, one := range all {
		list = append(list, map[string]any{"apiGroups": []any{one.Group}, "resources": []any{one.Resource}, "verbs": one.Verbs})
	}
	rules, err := json.Marshal(list)
	if err != nil {
		panic(err) // there are only texts
	}
	return string(rules)
}

// PermissionsTable returns the permissions of each reconciler in Markdown.
func PermissionsTable() string {
	var table strings.Builder
	table.WriteString("| agent | for | API group | resource | verbs | in a |\n|---|---|---|---|---|---|\n")
	for _, name := range reconciler.Agents() {
		for _, one := range Permissions(name) {
			role := "ClusterRole"
			if one.InNamespace() {
				role = "Role"
			}
			fmt.Fprintf(
				&table, "| `%s` | %s | `%s` | `%s` | `%s` | %s |\n",
				name, one.Use, cmp.Or(one.Group, `""`), one.Resource, strings.Join(one.Verbs, "`, `"), role,
			)
		}
	}
	return table.String()
}
