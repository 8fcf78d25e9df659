package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

// reachChecker reports access beyond the limits of a workspace.
type reachChecker struct {
	*parameterChecker
	team  *fleet.Workspace
	teams map[string]*workspace
	// owners lists the workspaces of each Secret.
	owners map[string][]string
	// objects lists the workspaces of each name of reconciler objects. If set, only these names are checked.
	objects map[string][]string
}

// checkParameters checks a deployment target. Parameters of a cluster type are the platform's own.
func (c *reachChecker) checkParameters(parameters map[string]any) {
	if name, given := parameters[secretParameter]; given {
		c.checkValue(c.path.Attribute(secretParameter), secretParameter, reconciler.Secrets, name)
	}
	if name, given := parameters[projectParameter]; given && c.team.ArgocdProject == nil {
		c.checkValue(c.path.Attribute(projectParameter), projectParameter, reconciler.Accounts, name)
	}
	for _, kind := range parameterKinds {
		name := kind.Parameter
		fields, isObject := parameters[name].(map[string]any)
		switch value, given := parameters[name]; {
		case isObject:
			c.checkFields(c.path.Attribute(name), kind, "", fields)
		case given && value == nil: // removes the cluster type's value
			if c.checkTrust(c.path.Attribute(name), kind, "") {
				c.checkValue(c.path.Attribute(name), name, kind.ReachBelow(""), nil)
			}
		}
	}
}

// checkFields checks a value and everything below it. at is the path of its field, "" for the spec.
func (c *reachChecker) checkFields(path *fleet.Path, kind *reconciler.ObjectKind, at string, value any) {
	switch value := value.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			c.checkFields(path.Attribute(key), kind, strings.TrimPrefix(at+"."+key, "."), value[key])
		}
		if len(value) > 0 || at == "" {
			return
		}
	case []any:
		for i := range value {
			c.checkFields(path.Index(i), kind, at, value[i])
		}
		if len(value) > 0 {
			return
		}
	}
	reach := kind.ReachOf(at)
	if _, isText := value.(string); reach == reconciler.Nothing && !isText { // removes the cluster type's values below
		reach = kind.ReachBelow(at)
	}
	if c.checkTrust(path, kind, at) {
		c.checkValue(path, kind.Parameter+"."+at, reach, value)
	}
}

// checkTrust reports a field that decides about trust, even of workspaces without limits: other keys would defeat the
// requirements of the cluster type.
func (c *reachChecker) checkTrust(path *fleet.Path, kind *reconciler.ObjectKind, at string) (isAllowed bool) {
	field := strings.TrimSuffix(kind.Parameter+"."+at, ".")
	if c.objects != nil || !kind.DecidesTrust(at) || c.allows(field) {
		return true
	}
	c.report(path,
		"decides which content or which server is trusted, which workspace %q does not allow its workloads: leave it to the parameters of the "+
			"cluster type, or add %q to the parameters of the workspace", c.team.Name, field)
	return false
}

func (c *reachChecker) allows(field string) bool {
	return slices.ContainsFunc(c.team.Parameters, func(allowed string) bool {
		return field == allowed || strings.HasPrefix(field, allowed+".")
	})
}

// checkValue checks one value. field is its path with the name of the parameter.
func (c *reachChecker) checkValue(path *fleet.Path, field string, reach reconciler.Reach, value any) {
	name, isText := value.(string)
	last := field[strings.LastIndex(field, ".")+1:]
	_, isList := value.([]any)
	_, isObject := value.(map[string]any)
	isScalar := value != nil && !isList && !isObject
	isName := isText && (reach == reconciler.Objects || reach == reconciler.Secrets) && (last == "name" || !isPartOfReference[last])
	switch {
	case reach == reconciler.Nothing, reach == reconciler.Decided, reach == reconciler.Secrets && isScalar && !isName:
		return
	case c.objects != nil:
		isOthers := func(owner string) bool { return owner != c.team.Name }
		if object, isValues := strings.CutSuffix(name, valuesSuffix); isName && isValues && reach == reconciler.Secrets {
			if i := slices.IndexFunc(c.objects[object], isOthers); i >= 0 {
				c.report(path,
					"%q is the Secret with the values of a workload of workspace %q, which this workload of workspace %q cannot use",
					name, c.objects[object][i], c.team.Name)
			}
			return
		}
		if i := slices.IndexFunc(c.objects[name], isOthers); isName && reach == reconciler.Objects && i >= 0 {
			c.report(path, "%q is an object of a workload of workspace %q, which this workload of workspace %q cannot use",
				name, c.objects[name][i], c.team.Name)
		}
		return
	case isName && reconciler.IsAgents(name):
		c.report(path, "%q is an object or a Secret of the agent itself, which no workload can use", name)
		return
	case isName && reach == reconciler.Secrets && c.owners[name] != nil && !slices.Contains(c.owners[name], c.team.Name):
		c.report(path, "%q is a Secret of workspace %q, which this workload of workspace %q cannot use", name, c.owners[name][0], c.team.Name)
		return
	case !c.team.IsConfined() && (reach != reconciler.Programs || c.team.ArgocdProject != nil):
		return
	case isName && reach == reconciler.Secrets && slices.Contains(c.team.Secrets, name):
		return
	case reach == reconciler.URLs && isText && (isOwnPath(name) || access.IsWithin(c.team.Sources, name)):
		return
	case c.allows(field):
		return
	}
	way := fmt.Sprintf("add %q to the parameters of the workspace", field)
	switch {
	case isName && reach == reconciler.Secrets:
		way = fmt.Sprintf("add %q to the secrets of the workspace, or %q to its parameters", name, field)
	case reach == reconciler.URLs:
		way = fmt.Sprintf("add the beginning of the URL to the sources of the workspace, or %q to its parameters", field)
	}
	c.report(path, "reaches %s, which workspace %q does not allow its workloads: %s", reach, c.team.Name, way)
}

// isPartOfReference lists the fields beside the name in a reference.
var isPartOfReference = map[string]bool{"kind": true, "key": true, "valuesKey": true, "targetPath": true, "apiVersion": true}

// isOwnPath reports whether a text is certainly a path. Kustomize also reads "git@host/path" and "github.com/path" as URLs.
func isOwnPath(text string) bool {
	const github = "github.com/"
	return !strings.ContainsAny(text, ":@") && !strings.EqualFold(text[:min(len(text), len(github))], github)
}

func (c *reachChecker) checkSource(path *fleet.Path, manifests *fleet.Manifests) {
	if c.team.Sources == nil || access.IsWithin(c.team.Sources, artifact.RepositoryURL(manifests.Manifests)) {
		return
	}
	c.report(path.Attribute("repo"), "is not among the sources of workspace %q, which are %s", c.team.Name,
		cmp.Or(strings.Join(c.team.Sources, ", "), "none"))
}

func (c *reachChecker) checkNamespace(path *fleet.Path, namespace string) {
	if namespace == "" || !c.team.IsConfined() || slices.Contains(c.team.Parameters, "namespace") {
		return
	}
	if !isNamespaceOf(c.team.Name, namespace) {
		c.report(path, "workspace %q does not allow its workloads to choose namespaces that do not begin with %q: "+
			"add \"namespace\" to the parameters of the workspace", c.team.Name, c.team.Name+"-")
		return
	}
	for _, other := range slices.Sorted(maps.Keys(c.teams)) {
		if len(other) > len(c.team.Name) && isNamespaceOf(other, namespace) {
			c.report(path, "begins with the name of workspace %q, so that workspace %q does not allow its workloads to choose it: "+
				"add \"namespace\" to the parameters of the workspace", other, c.team.Name)
			return
		}
	}
}

func isNamespaceOf(team, namespace string) bool {
	return namespace == team || strings.HasPrefix(namespace, team+"-")
}

func secretOwners(f *fleet.Fleet) map[string][]string {
	owners := map[string][]string{}
	for i := range f.Workspaces {
		for _, secret := range f.Workspaces[i].Secrets {
			owners[secret] = append(owners[secret], f.Workspaces[i].Name)
		}
	}
	return owners
}
