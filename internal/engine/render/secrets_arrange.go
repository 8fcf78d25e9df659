package render

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
)

// CheckSecrets reports references to secrets that cannot be delivered. reach returns the sorted references of the assignment
// with index i, and the config container of a key.
func (t *Templates) CheckSecrets(
	assignments []*schedule.Assignment,
	reach func(i int) (references iter.Seq2[string, fleet.SecretReference], origin func(key string) string),
) fleet.Findings {
	a := &secretChecker{
		writerChooser: writerChooser{
			fleetIndex: &t.fleetIndex,
			seen:       map[string]bool{},
			writers:    map[namespaceOn][]*schedule.Assignment{},
		}, checked: map[referenceOn]bool{},
	}
	for i, assignment := range assignments {
		host := t.hostOf(assignment)
		references, origin := reach(i)
		if !a.checkReferences(assignment.Host.ClusterType.Name, host, references, origin) {
			continue
		}
		a.checkForms(host, assignment, references)
		if assignment.Target.Target.Namespace != "" && host.service != nil && secretName(assignment.Target.Target) != "" {
			a.addWriter(assignment)
		}
	}
	a.checkSharedNames()
	return a.findings
}

type referenceOn struct {
	host *hostTemplates
	key  string
	of   fleet.SecretReference
}

type secretChecker struct {
	writerChooser // its writers write Secrets
	checked       map[referenceOn]bool
}

func (a *secretChecker) report(path *fleet.Path, format string, arguments ...any) {
	a.reportOnce(&a.findings, path, format, arguments...)
}

func (a *secretChecker) checkReferences(
	clusterType string, host *hostTemplates, references iter.Seq2[string, fleet.SecretReference], origin func(key string) string,
) (hasAny bool) {
	firstKey, firstStore := "", ""
	for key, reference := range references {
		if !hasAny {
			hasAny, firstKey, firstStore = true, key, reference.Store
		}
		if host.service != nil && host.service.OneStore && reference.Store != firstStore {
			a.report(secretPath(origin(key), key).Attribute("store"),
				"is %q, and the store of %q is %q: %q, the secret_service of cluster type %q, gets all secrets of an assignment from one store",
				reference.Store, firstKey, firstStore, host.service.Name, clusterType)
		}
		if on := (referenceOn{host, key, reference}); !a.checked[on] {
			a.checked[on] = true
			a.checkReference(clusterType, host, key, reference, origin)
		}
	}
	return hasAny
}

func secretPath(container, key string) *fleet.Path {
	return fleet.PathOf("config_containers", container).Attribute("secrets").Key(key)
}

func (a *secretChecker) checkReference(
	clusterType string, host *hostTemplates, key string, reference fleet.SecretReference, origin func(key string) string,
) {
	if !host.hasSecrets {
		a.report(fleet.PathOf("cluster_types", clusterType).Attribute("secret_service"),
			"is not set, and config container %q has references to secrets for assignments there: use one of %s, or a template of your own of "+
				"type \"secret\"", origin(key), strings.Join(fleet.BuiltinTemplates["secret"], ", "))
		return
	}
	report := func(attribute, format string, arguments ...any) {
		path := secretPath(origin(key), key)
		if attribute != "" {
			path = path.Attribute(attribute)
		}
		a.report(path, format, arguments...)
	}
	if len(validation.IsConfigMapKey(key)) > 0 {
		report("",
			`key %q cannot be one of a Secret: letters, digits, "-", "_" and "." can, up to 253 of them, and it does not start with ".."`,
			key)
	}
	store, known := host.stores[reference.Store]
	if !known {
		report("store", "cluster type %q has no store %q among its secret_stores%s", clusterType, reference.Store,
			fleet.DidYouMean(reference.Store, slices.Sorted(maps.Keys(host.stores))))
		return
	}
	if host.service == nil {
		return
	}
	if provider := host.service.Provider(store); provider != nil {
		if attribute, problem := provider.Cannot(store, reference); problem != "" {
			report(attribute, "%s; cluster type %q has it for store %q", problem, clusterType, reference.Store)
		}
	}
}

func (a *secretChecker) checkForms(
	host *hostTemplates, assignment *schedule.Assignment, references iter.Seq2[string, fleet.SecretReference],
) {
	forms := assignment.Target.Target.Manifests.ConfigAs
	if len(forms) == 0 {
		return
	}
	path, clusterType := targetPath(assignment.Target).Attribute("config_as"), assignment.Host.ClusterType.Name
	name := secretName(assignment.Target.Target)
	_, among := forms.Values()
	isListed := slices.ContainsFunc(forms, func(form string) bool { return form == "secret" || strings.HasPrefix(form, "secret:") })
	switch reason := noSecretValues(host, maps.Collect(references)); {
	case among && !isListed && reason != "":
		a.report(path,
			`"values" cannot have the references to secrets on cluster type %q: %s. Add "secret", and let the chart use the existing Secret %q`,
			clusterType, reason, cmp.Or(name, defaultSecretName))
	case !among && name == "":
		a.report(path, `has no form for the references to secrets that reach the deployment target: add "secret"`)
	}
}

func noSecretValues(host *hostTemplates, references map[string]fleet.SecretReference) string {
	switch {
	case host.reconciler == nil:
		return "how a reconciler template of your own reads values from a Secret is not known"
	case host.reconciler.SecretValues == nil:
		return host.reconciler.NoSecretValues
	case host.service == nil:
		return ""
	case host.service.NoValues != "" || host.reconciler.SecretValues.Namespace == "":
		return host.service.NoValues
	}
	for _, key := range slices.Sorted(maps.Keys(references)) {
		if name := references[key].Store; host.stores[name].Kind == secretservice.NamespacedStore {
			return fmt.Sprintf("store %q is a %s, in the namespace of the workload, and %s reads values in %s", name, secretservice.NamespacedStore,
				host.reconciler.Product, host.reconciler.SecretValues.Namespace)
		}
	}
	return ""
}

func (a *secretChecker) checkSharedNames() {
	eachNamespace(a.writers, func(_, all []*schedule.Assignment) {
		first := map[string]*schedule.Assignment{}
		for _, assignment := range all {
			name := secretName(assignment.Target.Target)
			if other := first[name]; other != nil && other.Target != assignment.Target {
				a.report(targetPath(assignment.Target).Attribute("config_as"),
					"deployment target %q has the Secret %q in namespace %q, too: give one of them another name, \"secret:<name>\"",
					other.Target.Name, name, assignment.Namespace)
			} else {
				first[name] = assignment
			}
		}
	})
}
