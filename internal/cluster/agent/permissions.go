package agent

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// PermissionUse is the setting that requires a permission.
type PermissionUse string

// The uses, in the order of the table.
const (
	UseAlways   PermissionUse = "always"
	UseFeedback PermissionUse = "`feedback`"
	UseInstall  PermissionUse = "`install`"
	UseWait     PermissionUse = "`wait`"
	UseDelete   PermissionUse = "`on_destroy = \"delete\"`"
)

var permissionUses = []PermissionUse{UseAlways, UseFeedback, UseInstall, UseWait, UseDelete}

// Permission lists the verbs that an account needs for a resource.
type Permission struct {
	Use             PermissionUse
	Group, Resource string
	Verbs           []string
}

// Permissions returns the permissions to apply, compare and remove the objects of an agent that reads with a token; for
// argocd-hub, on the hub.
func Permissions(name string) []Permission {
	by, settings, found := reconciler.Named(name), permissionSettings(name), permissions{}
	found.addObjects(UseAlways, settings)
	if by.Agent.NoFeedback == "" {
		settings.Feedback = &Reporting{Forge: forge.GitHub, Token: "token"}
		found.addObjects(UseFeedback, settings)
	}
	if by.OnHub() {
		found.add(UseAlways, "", "secrets", "list") // to find the clusters that share objects
	} else {
		found.add(UseInstall, "apiextensions.k8s.io", "customresourcedefinitions", "get", "create", "patch")
	}
	found.addWait(by)
	found.add(UseDelete, "", "namespaces", "delete")
	found.add(UseDelete, "*", "*", "list")
	if slices.ContainsFunc(by.Kinds, func(kind reconciler.ObjectKind) bool {
		return kind.Is(reconciler.Follows) && kind.Removal.Inventory != nil && !kind.Removal.Waits
	}) {
		found.add(UseDelete, "*", "*", "get") // to wait until applied objects are gone
	}
	slices.SortStableFunc(found, func(a, b Permission) int {
		order := cmp.Compare(slices.Index(permissionUses, a.Use), slices.Index(permissionUses, b.Use))
		return cmp.Or(order, cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource))
	})
	order := []string{"get", "list", "create", "patch", "delete"}
	for _, one := range found {
		slices.SortFunc(one.Verbs, func(a, b string) int { return slices.Index(order, a) - slices.Index(order, b) })
	}
	return found
}

func permissionSettings(name string) Settings {
	settings := Settings{
		Cluster: "cluster", ClusterType: "type", Reconciler: name, Credentials: Credentials{Token: "token"},
		Repository: folder.Location{URL: "https://git.example.com/platform/gitops", Branch: "main"},
	}
	if reconciler.Named(name).OnHub() {
		settings.Environment, settings.Registration = "dev", &Registration{Server: "https://cluster.example.com", Token: "token"}
	}
	return settings
}

type permissions []Permission

// add adds verbs that neither the use nor UseAlways has yet.
func (p *permissions) add(use PermissionUse, group, resource string, verbs ...string) {
	at := -1
	for i, one := range *p {
		if one.Group != group || one.Resource != resource || one.Use != use && one.Use != UseAlways {
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

// addObjects adds the permissions for the objects of settings. Namespaces stay, and so do others' objects.
func (p *permissions) addObjects(use PermissionUse, settings Settings) {
	objects, problems := Render(settings)
	if Failed(problems) {
		panic(fmt.Sprint(problems))
	}
	for i := range objects {
		group, kind := objects[i].GroupVersionKind().Group, objects[i].GetKind()
		resource, known := strings.ToLower(kind)+"s", reconciler.KindOf(group, kind)
		if known != nil {
			resource = known.Resource
		}
		p.add(use, group, resource, "get", "create", "patch")
		switch {
		case objects[i].Partial || objects[i].Stage == Namespaces:
		case objects[i].Part == Source && !known.Is(reconciler.Source): // a project stays with on_destroy = "keep"
			p.add(UseDelete, group, resource, "delete")
		default:
			p.add(use, group, resource, "delete")
		}
		if known != nil && len(known.Makes) > 0 {
			made := reconciler.KindNamed(known.Makes[0])
			p.add(use, made.Group, made.Resource, "list", "patch")
		}
	}
}

// addWait adds the permissions to read whether roots, and the objects they create, are ready.
func (p *permissions) addWait(by *reconciler.Reconciler) {
	var needed []string
	for _, kind := range by.Kinds { // makers come before the kinds that they make
		isRoot := kind.Is(reconciler.Follows) || by.OnHub() && kind.Template != ""
		if isRoot && !kind.WaitsForAll || slices.Contains(needed, kind.Kind) {
			p.add(UseWait, kind.Group, kind.Resource, "list")
			needed = append(needed, kind.Makes...)
		}
	}
}

// PermissionsTable returns the permissions of each reconciler in Markdown.
func PermissionsTable() string {
	var table strings.Builder
	table.WriteString("| agent | for | API group | resource | verbs |\n|---|---|---|---|---|\n")
	for _, name := range reconciler.Agents() {
		for _, one := range Permissions(name) {
			fmt.Fprintf(
				&table, "| `%s` | %s | `%s` | `%s` | `%s` |\n",
				name, one.Use, cmp.Or(one.Group, `""`), one.Resource, strings.Join(one.Verbs, "`, `"),
			)
		}
	}
	return table.String()
}
