package adopt

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/deep"
)

type workload struct {
	name, workspace string
	variants        []*variant
}

type variant struct {
	name   string
	unit   *unit
	hosts  []string // sorted
	policy string
}

const defaultWorkspace = "platform"

const placementLabel = "placement"

// groupUnits combines units of the same object to a workload, and units with equal content to a deployment target.
func (a *builder) groupUnits(units []*unit) (workloads []*workload) {
	a.generalize(units)
	byKey := map[string][]*unit{}
	for _, u := range units {
		byKey[u.key] = append(byKey[u.key], u)
	}
	a.shareNamespaces(units)
	named := map[string]int{}
	keys := slices.Sorted(maps.Keys(byKey))
	for _, key := range keys {
		named[labelName(byKey[key][0].name)]++
	}
	used, targets := map[string]bool{}, map[string]bool{}
	for _, key := range keys {
		all := byKey[key]
		main := all[0].main
		plain, kind := labelName(all[0].name), strings.ToLower(main.kind.Kind)
		names := []string{plain, plain + "-" + kind, plain + "-" + kind + "-" + main.namespace}
		if named[plain] > 1 {
			names = names[1:]
		}
		w := &workload{name: uniqueName(used, names...), workspace: workspaceOf(main)}
		byContent := map[string]*variant{}
		for _, u := range all {
			content, err := fleet.CanonicalJSON([]any{u.manifests.attributes(), u.namespace, u.parameters()})
			if err != nil {
				a.listed.add(u.main, false, err.Error())
				continue
			}
			one := byContent[content]
			if one == nil {
				one = &variant{unit: u}
				byContent[content] = one
				w.variants = append(w.variants, one)
			}
			one.hosts = append(one.hosts, u.main.host.name)
		}
		for _, one := range w.variants {
			slices.Sort(one.hosts)
			name := "default"
			if len(w.variants) > 1 {
				name = one.hosts[0]
			}
			one.name = name
			for i := 0; targets[fleet.FullName(w.name, one.name)]; i++ {
				one.name = labelName(name + strings.Repeat("-x", i+1))
			}
			targets[fleet.FullName(w.name, one.name)] = true
		}
		if len(w.variants) > 0 {
			workloads = append(workloads, w)
		}
	}
	slices.SortFunc(workloads, func(a, b *workload) int { return strings.Compare(a.name, b.name) })
	return workloads
}

// shareNamespaces removes the namespaces of several workspaces, because a namespace has one owner.
func (a *builder) shareNamespaces(units []*unit) {
	owners := map[string]map[string]bool{}
	for _, u := range units {
		if u.namespace != "" {
			if owners[u.namespace] == nil {
				owners[u.namespace] = map[string]bool{}
			}
			owners[u.namespace][workspaceOf(u.main)] = true
		}
	}
	for _, u := range units {
		if len(owners[u.namespace]) > 1 {
			const format = "namespace %s is used by several workspaces: the deployment target has none, and it is in parameters.objects"
			a.listed.add(u.main, true, fmt.Sprintf(format, u.namespace))
			u.namespace = ""
		}
	}
}

func workspaceOf(o *manifestObject) string {
	project := ""
	if o.kind.Project != "" {
		project = textAt(o.spec(), o.kind.Project)
	}
	if project == "" || project == "default" {
		return defaultWorkspace
	}
	return labelName(project)
}

func hostsOf(workloads []*workload, all map[string]*host) (hosts []*host) {
	on := map[string]bool{}
	for _, w := range workloads {
		for _, one := range w.variants {
			for _, name := range one.hosts {
				on[name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if h := all[name]; on[name] || h.isCluster { // a cluster without objects is a placement, too
			hosts = append(hosts, h)
		}
	}
	return hosts
}

func (a *builder) fleet(workloads []*workload, hosts []*host) map[string]any {
	workspaces := map[string]bool{}
	for _, w := range workloads {
		workspaces[w.workspace] = true
	}
	policies := a.policies(workloads, hosts)
	result := map[string]any{
		"environment": a.environment, "workspaces": []any{}, "cluster_types": []any{}, "clusters": []any{}, "workloads": []any{},
		"target_policies": policies,
		"templates": []any{
			map[string]any{"name": templateName, "type": "reconciler", "manifests": []any{template}},
			map[string]any{"name": templateName, "type": "namespace", "manifests": []any{"{{- /* The namespaces are there. */ -}}\n"}},
			map[string]any{"name": templateName, "type": "config", "manifests": []any{configTemplate}},
		},
	}
	add := func(key string, object map[string]any) { result[key] = append(result[key].([]any), object) }
	for _, name := range slices.Sorted(maps.Keys(workspaces)) {
		add("workspaces", map[string]any{"name": name})
	}
	for _, h := range hosts {
		made := map[string]any{"name": h.name, "reconciler": templateName, "namespace_service": templateName, "config_type": templateName}
		if len(h.labels) > 0 {
			made["labels"] = labelsOf(h.labels)
		}
		add("cluster_types", made)
		if h.isNamed {
			made["parameters"] = map[string]any{"cluster": map[string]any{"name": h.cluster.name, "server": h.cluster.server}}
		}
		if h.isCluster {
			add("clusters", map[string]any{"name": h.name, "cluster_type": h.name})
		}
	}
	for _, w := range workloads {
		targets := map[string]any{}
		for _, one := range w.variants {
			attributes := one.unit.manifests.attributes()
			attributes["parameters"] = map[string]any{"objects": one.unit.parameters()}
			target := map[string]any{
				"environment": a.environment, "labels": map[string]any{placementLabel: one.policy}, "manifests": attributes,
			}
			if one.unit.namespace != "" {
				target["namespace"] = one.unit.namespace
			}
			targets[one.name] = target
		}
		add("workloads", map[string]any{"name": w.name, "workspace": w.workspace, "deployment_targets": targets})
	}
	return result
}

func labelsOf(labels map[string]string) map[string]any {
	all := make(map[string]any, len(labels))
	for key, value := range labels {
		all[key] = value
	}
	return all
}

// policies returns a target policy for each set of hosts.
func (a *builder) policies(workloads []*workload, hosts []*host) []any {
	bySet := map[string][]*variant{}
	for _, w := range workloads {
		for _, one := range w.variants {
			set := strings.Join(one.hosts, " ")
			bySet[set] = append(bySet[set], one)
		}
	}
	used := map[string]bool{}
	policies := []any{}
	for _, set := range slices.Sorted(maps.Keys(bySet)) {
		selector, words := a.selectorOf(strings.Fields(set), hosts)
		name := uniqueName(used, words)
		for _, one := range bySet[set] {
			one.policy = name
		}
		policies = append(policies, map[string]any{
			"name": name, "cluster_type_selector": selector,
			"deployment_target_selector": map[string]any{"match_labels": map[string]any{placementLabel: name}},
		})
	}
	slices.SortFunc(policies, func(a, b any) int { return strings.Compare(textAt(a, "name"), textAt(b, "name")) })
	return policies
}

// selectorOf selects hosts by the fewest labels: none for all hosts, one, two, or else names. words describes the
// selector.
func (a *builder) selectorOf(selected []string, all []*host) (selector map[string]any, words string) {
	if len(selected) == len(all) {
		return map[string]any{}, "everywhere"
	}
	labels := map[string]map[string]string{}
	for _, h := range all {
		labels[h.name] = map[string]string{clusterTypeLabel: h.name}
		for key, value := range h.labels {
			if key != clusterTypeLabel {
				labels[h.name][key] = value
			}
		}
	}
	matches := func(match func(labels map[string]string) bool) bool {
		for name, of := range labels {
			if match(of) != slices.Contains(selected, name) {
				return false
			}
		}
		return true
	}
	first := labels[selected[0]]
	keys := slices.Sorted(maps.Keys(first))
	slices.SortStableFunc(keys, func(one, other string) int { return a.rankLabel(one) - a.rankLabel(other) })
	for _, key := range keys {
		if matches(func(labels map[string]string) bool { return labels[key] == first[key] }) {
			return map[string]any{"match_labels": map[string]any{key: first[key]}}, cmp.Or(strings.TrimPrefix(first[key], "true"), key)
		}
	}
	for _, key := range keys {
		values := map[string]bool{}
		for _, name := range selected {
			values[labels[name][key]] = true
		}
		if key != clusterTypeLabel && !values[""] && matches(func(labels map[string]string) bool { return values[labels[key]] }) {
			return selectorIn(key, slices.Sorted(maps.Keys(values))), strings.Join(slices.Sorted(maps.Keys(values)), "-")
		}
	}
	for i, key := range keys {
		for _, other := range keys[i+1:] {
			if matches(func(labels map[string]string) bool { return labels[key] == first[key] && labels[other] == first[other] }) {
				return map[string]any{"match_labels": map[string]any{key: first[key], other: first[other]}}, first[key] + "-" + first[other]
			}
		}
	}
	return selectorIn(clusterTypeLabel, selected), strings.Join(selected, "-")
}

// rankLabel prefers the labels in selectors of ApplicationSets, and avoids Argo CD's labels and names.
func (a *builder) rankLabel(key string) int {
	switch {
	case key == clusterTypeLabel:
		return 3
	case a.selectorLabels[key]:
		return 0
	case strings.HasPrefix(key, "argocd.argoproj.io/"):
		return 2
	}
	return 1
}

func selectorIn(key string, values []string) map[string]any {
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	return map[string]any{"match_expressions": []any{map[string]any{"key": key, "operator": "In", "values": list}}}
}

// ofCluster begins a placeholder for the cluster's name or server, which the template replaces.
const ofCluster = "$(cluster."

// generalize merges Applications that one ApplicationSet makes for several clusters, if placeholders for the name and
// server of the cluster make them equal. The cluster type's parameters have the values.
func (a *builder) generalize(units []*unit) {
	byKey := map[string][]*unit{} // by resulting key
	of := map[*unit]*unit{}
	for _, u := range units {
		if general := a.generalUnit(u); general != nil {
			byKey[general.key], of[general] = append(byKey[general.key], general), u
		}
	}
	for _, generals := range byKey {
		hosts := map[*host]bool{}
		for _, u := range generals {
			hosts[u.main.host] = true
		}
		if len(hosts) < 2 || len(hosts) < len(generals) {
			continue
		}
		for _, u := range generals {
			*of[u] = *u
			u.main.host.isNamed = true
		}
	}
}

// generalUnit returns the unit with placeholders for its cluster; nil if it needs none.
func (a *builder) generalUnit(u *unit) *unit {
	of := u.main.host.cluster
	if u.main.set == nil || of == nil {
		return nil
	}
	replace := func(text string) string {
		if of.server != "" {
			text = strings.ReplaceAll(text, of.server, ofCluster+"server)")
		}
		return replaceWord(text, of.name, ofCluster+"name)")
	}
	made := *u.main
	made.name = replace(u.main.name)
	made.fields, _ = deep.Mapped(u.main.fields, func(part any) any {
		if text, isText := part.(string); isText {
			return replace(text)
		}
		return part
	}).(map[string]any)
	general := &unit{main: u.main, objects: []*manifestObject{&made}, manifests: u.manifests, namespace: u.namespace}
	general.key = u.main.set.key() + " " + made.name
	general.name = strings.Trim(aroundCluster.ReplaceAllString(made.name, "-"), "-.")
	if general.name == "" {
		general.name = u.main.set.name
	}
	for name, value := range general.manifests.fields() {
		if replace(*value) == *value {
			continue
		}
		if name == "repo" || name == "storage" {
			return nil
		}
		*value = ""
	}
	if replace(u.namespace) != u.namespace {
		general.namespace = ""
	}
	if a.removeInvalid(general); general.manifests.Repo == "" {
		return nil
	}
	return general
}

var aroundCluster = regexp.MustCompile(`[-.]*\$\(cluster\.[a-z]+\)[-.]*`)

// replaceWord replaces a word that no letter or digit touches.
func replaceWord(text, word, by string) string {
	var made strings.Builder
	isPart := func(b byte) bool { return b >= '0' && b <= '9' || b|0x20 >= 'a' && b|0x20 <= 'z' }
	for word != "" {
		i := strings.Index(text, word)
		if i < 0 {
			break
		}
		end := i + len(word)
		made.WriteString(text[:i])
		if i > 0 && isPart(text[i-1]) || end < len(text) && isPart(text[end]) || strings.HasSuffix(text[:i], ofCluster) {
			made.WriteString(word)
		} else {
			made.WriteString(by)
		}
		text = text[end:]
	}
	return made.String() + text
}
