package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Permission lists the verbs that an account needs for a resource on a cluster.
type Permission struct {
	Group, Resource string
	Verbs           []string
}

// coreResources are the resources of the kinds of Kubernetes itself among an agent's objects.
var coreResources = map[string]string{"Namespace": "namespaces", "Secret": "secrets", "ConfigMap": "configmaps"}

// Permissions returns what an account needs for an agent of a reconciler that reads with a token: to apply its objects, to
// compare them, and to remove them with on_destroy = "keep".
func Permissions(of string) []Permission {
	objects, _ := Render(Settings{
		Cluster: "cluster", ClusterType: "type", Reconciler: of, Credentials: Credentials{Token: "token"},
		Repository: folder.Location{URL: "https://git.example.com/gitops", Branch: "main"},
	})
	var all []Permission
	add := func(group, resource string, verbs ...string) {
		if !slices.ContainsFunc(all, func(one Permission) bool { return one.Group == group && one.Resource == resource }) {
			all = append(all, Permission{group, resource, verbs})
		}
	}
	for i := range objects {
		group, kind := objects[i].GroupVersionKind().Group, objects[i].GetKind()
		if kind == "Namespace" { // which stays
			add(group, coreResources[kind], "get", "create", "patch")
			continue
		}
		resource := coreResources[kind]
		known := reconciler.KindOf(group, kind)
		if known != nil {
			resource = known.Resource
		}
		add(group, resource, "get", "create", "patch", "delete")
		if known != nil && len(known.Makes) > 0 {
			made := reconciler.KindNamed(known.Makes[0])
			add(made.Group, made.Resource, "list", "patch")
		}
	}
	slices.SortFunc(all, func(a, b Permission) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	return all
}

// PermissionsTable is a table in Markdown of the permissions for each reconciler whose agent is on the cluster itself.
func PermissionsTable() string {
	var table strings.Builder
	table.WriteString("| agent | API group | resource | verbs |\n|---|---|---|---|\n")
	for _, name := range reconciler.Agents() {
		if reconciler.Named(name).OnHub() {
			continue
		}
		for _, one := range Permissions(name) {
			fmt.Fprintf(&table, "| `%s` | `%s` | `%s` | `%s` |\n", name, cmp.Or(one.Group, `""`), one.Resource, strings.Join(one.Verbs, "`, `"))
		}
	}
	return table.String()
}
