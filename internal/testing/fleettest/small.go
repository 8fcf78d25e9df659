package fleettest

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// Small returns a random fleet for oracles that try every combination: a few objects of every kind, with few labels and values.
// Requirements may be missing, and containers ambiguous.
func Small(seed uint64) (*fleet.Fleet, fleet.Config) {
	s := &small{Rand: rand.New(rand.NewPCG(seed, 1)), fleet: &fleet.Fleet{Environment: "dev"}, config: fleet.Config{}}
	s.workspaces()
	s.hosts()
	s.workloads()
	if s.IntN(10) == 0 {
		s.placements()
	} else {
		s.policies()
	}
	s.containers()
	s.hydration()
	return s.fleet, s.config
}

type small struct {
	*rand.Rand
	fleet  *fleet.Fleet
	config fleet.Config
}

var vocabulary = []struct {
	key    string
	values []string
}{
	{"region", []string{"east", "west"}},
	{"size", []string{"large", "small"}},
	{"restricted", []string{"", "true"}},
	{"example.com/tier", []string{"1", "2", "3"}},
}

// reserved holds labels for selectors and containers only.
var reserved = []struct {
	key    string
	values []string
}{
	{"environment", []string{"dev", "prod"}},
	{"cluster-type", []string{"type-0", "type-1"}},
	{"cluster", []string{"cluster-0", "cluster-1"}},
	{"workspace", []string{"team-0", "team-1"}},
	{"workload", []string{"app-0", "app-1"}},
	{"deployment-target", []string{"app-0-live", "app-1-test"}},
}

func (s *small) chance(percent int) bool { return s.IntN(100) < percent }

func pick[T any](s *small, from []T) T { return from[s.IntN(len(from))] }

func (s *small) label() (key, value string) {
	if s.chance(25) {
		label := pick(s, reserved)
		return label.key, pick(s, label.values)
	}
	label := pick(s, vocabulary)
	return label.key, pick(s, label.values)
}

func (s *small) labels() fleet.Labels {
	var labels fleet.Labels
	for _, label := range vocabulary {
		if s.chance(50) {
			if labels == nil {
				labels = fleet.Labels{}
			}
			labels[label.key] = pick(s, label.values)
		}
	}
	return labels
}

func (s *small) workspaces() {
	for i := range 1 + s.IntN(2) {
		workspace := fleet.Workspace{Name: fmt.Sprintf("team-%d", i), Labels: s.labels()}
		if s.chance(30) {
			workspace.Environments = []string{"dev", "stage"}
		}
		s.fleet.Workspaces = append(s.fleet.Workspaces, workspace)
	}
}

func (s *small) hosts() {
	for i := range 1 + s.IntN(4) {
		s.fleet.ClusterTypes = append(s.fleet.ClusterTypes, fleet.ClusterType{
			Name: fmt.Sprintf("type-%d", i), Labels: s.labels(), Taints: s.taints(),
			Reconciler: fleet.DefaultReconciler, NamespaceService: fleet.DefaultNamespaceService, ConfigType: fleet.DefaultConfigType,
		})
	}
	for i := range s.IntN(5) {
		s.fleet.Clusters = append(s.fleet.Clusters, fleet.Cluster{
			Name: fmt.Sprintf("cluster-%d", i), ClusterType: pick(s, s.fleet.ClusterTypes).Name, Labels: s.labels(), Taints: s.taints(),
		})
	}
}

func (s *small) taints() []fleet.Taint {
	var taints []fleet.Taint
	for _, key := range []string{"gpu", "restricted"} {
		if s.chance(20) {
			taints = append(taints, fleet.Taint{Key: key, Value: pick(s, []string{"", "true", "no"}), Effect: "NoSchedule"})
		}
	}
	return taints
}

func (s *small) tolerations() []fleet.Toleration {
	var tolerations []fleet.Toleration
	for range s.IntN(3) {
		toleration := fleet.Toleration{
			Key: pick(s, []string{"", "gpu", "restricted"}), Operator: pick(s, []string{"Equal", "Exists"}),
			Effect: pick(s, []string{"", "NoSchedule"}),
		}
		if toleration.Key == "" {
			toleration.Operator = "Exists"
		}
		if toleration.Operator == "Equal" {
			toleration.Value = pick(s, []string{"", "true", "no"})
		}
		tolerations = append(tolerations, toleration)
	}
	return tolerations
}

func (s *small) workloads() {
	for i := range 1 + s.IntN(4) {
		workload := fleet.Workload{
			Name: fmt.Sprintf("app-%d", i), Workspace: pick(s, s.fleet.Workspaces).Name, Labels: s.labels(),
		}
		if i > 0 && s.chance(10) {
			workload.Requires = []string{fmt.Sprintf("app-%d", s.IntN(i))}
		}
		for _, name := range []string{"live", "test"} {
			if name == "live" || s.chance(50) {
				workload.DeploymentTargets = append(workload.DeploymentTargets, fleet.DeploymentTarget{
					Name: name, Labels: s.labels(),
					Manifests: fleet.Manifests{
						Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/" + workload.Name, Branch: "dev", Path: "./" + name},
					},
				})
			}
		}
		s.fleet.Workloads = append(s.fleet.Workloads, workload)
	}
}

func (s *small) policies() {
	for i := range s.IntN(6) {
		policy := fleet.TargetPolicy{Name: fmt.Sprintf("policy-%d", i), Effect: "schedule", Tolerations: s.tolerations()}
		if s.chance(20) {
			policy.Effect = "exclude"
		}
		if s.chance(20) {
			policy.Workspace = pick(s, s.fleet.Workspaces).Name
		}
		if s.chance(20) {
			policy.WorkloadSelector = s.selector()
		}
		if s.chance(70) {
			policy.DeploymentTargetSelector = s.selector()
		}
		if s.chance(35) {
			policy.ClusterSelector = s.selector()
		}
		if policy.ClusterSelector == nil || s.chance(50) {
			policy.ClusterTypeSelector = s.selector()
		}
		s.fleet.TargetPolicies = append(s.fleet.TargetPolicies, policy)
	}
}

func (s *small) selector() *fleet.Selector {
	selector := &fleet.Selector{}
	for range s.IntN(3) {
		key, value := s.label()
		_, other := s.label()
		if key == "environment" {
			other = "stage" // other values are errors if a fleet lists environments
		}
		values := []string{value}
		if s.chance(40) && other != value {
			values = slices.Sorted(slices.Values([]string{value, other}))
		}
		switch s.IntN(3) {
		case 0:
			if selector.MatchLabels == nil {
				selector.MatchLabels = map[string]string{}
			}
			selector.MatchLabels[key] = value
		case 1:
			expression := fleet.Expression{Key: key, Operator: pick(s, []string{"In", "NotIn", "Exists", "DoesNotExist"})}
			if expression.Operator == "In" || expression.Operator == "NotIn" {
				expression.Values = values
			}
			selector.MatchExpressions = append(selector.MatchExpressions, expression)
		default:
			text := pick(
				s,
				[]string{key, "!" + key, key + "=" + value, key + "!=" + value, key + " in (" + value + ", x)", key + " notin (" + value + ")"},
			)
			if selector.Expression != "" {
				text = selector.Expression + "," + text
			}
			selector.Expression = text
		}
	}
	return selector
}

func (s *small) placements() {
	s.fleet.Explicit = true
	for _, clusterType := range s.fleet.ClusterTypes {
		s.place(fleet.ExplicitAssignment{ClusterType: clusterType.Name})
	}
	for _, cluster := range s.fleet.Clusters {
		s.place(fleet.ExplicitAssignment{Cluster: cluster.Name})
	}
	slices.SortFunc(s.fleet.Assignments, fleet.CompareExplicitAssignments)
}

func (s *small) place(on fleet.ExplicitAssignment) {
	for _, workload := range s.fleet.Workloads {
		for _, target := range workload.DeploymentTargets {
			if s.chance(25) {
				on.DeploymentTarget = fleet.FullName(workload.Name, target.Name)
				s.fleet.Assignments = append(s.fleet.Assignments, on)
			}
		}
	}
}

func (s *small) containers() {
	for i := range s.IntN(6) {
		container := fleet.ConfigContainer{Name: fmt.Sprintf("config-%d", i)}
		for range s.IntN(3) {
			if container.Labels == nil {
				container.Labels = fleet.Labels{}
			}
			key, value := s.label()
			container.Labels[key] = value
		}
		if s.chance(40) {
			container.Priority = pick(s, []json.Number{"-1", "0.5", "1", "10"})
		}
		text, err := fleet.CanonicalJSON(s.data(0))
		if err != nil {
			panic(err) // never
		}
		s.fleet.ConfigContainers = append(s.fleet.ConfigContainers, container)
		s.config[container.Name] = text
	}
}

func (s *small) data(depth int) map[string]any {
	data := map[string]any{}
	for range s.IntN(4) {
		data[pick(s, []string{"A", "B", "C", "name"})] = s.value(depth)
	}
	return data
}

func (s *small) value(depth int) any {
	switch kind := s.IntN(8); {
	case kind == 0:
		return nil
	case kind == 1:
		return s.chance(50)
	case kind == 2:
		return json.Number(fmt.Sprint(s.IntN(3)))
	case kind == 3 && depth < 2:
		list := []any{}
		for range s.IntN(3) {
			list = append(list, s.value(depth+1))
		}
		return list
	case kind >= 6 && depth < 2:
		return s.data(depth + 1)
	}
	return pick(s, []string{"x", "y", "0123"})
}

func (s *small) hydration() {
	if s.chance(50) {
		s.fleet.Hydration = &fleet.Hydration{
			Precedence: pick(s, []string{"", "specificity", "name"}),
			OnConflict: pick(s, []string{"", "error", "warn", "override"}),
			Lists:      pick(s, []string{"", "replace", "append", "merge"}),
			ListKey:    pick(s, []string{"", "A"}),
		}
	}
}
