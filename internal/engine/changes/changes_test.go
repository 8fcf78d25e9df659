package changes_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/changes"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// sample returns a fleet of two teams: hello runs on the cluster types large and small, and on the cluster
// drone-a of type small; reports runs on large.
func sample() (*fleet.Fleet, fleet.Config) {
	git := func(name string) fleet.Manifests {
		return fleet.Manifests{
			Manifests: folder.Manifests{Storage: "git", Repo: "https://git.example.com/" + name, Tag: "v1.0.0", Path: "./deploy"},
		}
	}
	clusterType := func(name string, labels fleet.Labels) fleet.ClusterType {
		return fleet.ClusterType{
			Name: name, Labels: labels, Reconciler: fleet.DefaultReconciler,
			NamespaceService: fleet.DefaultNamespaceService, ConfigType: fleet.DefaultConfigType,
		}
	}
	everywhere := &fleet.Selector{}
	f := &fleet.Fleet{
		Environment: "dev",
		Workspaces:  []fleet.Workspace{{Name: "kaizen"}, {Name: "office"}},
		ClusterTypes: []fleet.ClusterType{
			clusterType("large", fleet.Labels{"region": "east"}), clusterType("small", fleet.Labels{"region": "east"}),
		},
		Clusters: []fleet.Cluster{{Name: "drone-a", ClusterType: "small", Labels: fleet.Labels{"edge": "true"}}},
		Workloads: []fleet.Workload{
			{Name: "hello", Workspace: "kaizen", DeploymentTargets: []fleet.DeploymentTarget{
				{Name: "live", Labels: fleet.Labels{"app": "hello", "on": "types"}, Manifests: git("hello")},
				{Name: "edge", Labels: fleet.Labels{"app": "hello", "on": "clusters"}, Manifests: git("hello")},
			}},
			{Name: "reports", Workspace: "office", DeploymentTargets: []fleet.DeploymentTarget{
				{Name: "nightly", Labels: fleet.Labels{"app": "reports"}, Manifests: git("reports")},
			}},
		},
		TargetPolicies: []fleet.TargetPolicy{
			{
				Name:                     "edges",
				Effect:                   "schedule",
				DeploymentTargetSelector: &fleet.Selector{MatchLabels: map[string]string{"on": "clusters"}},
				ClusterSelector:          everywhere,
			},
			{
				Name:                     "hellos",
				Effect:                   "schedule",
				DeploymentTargetSelector: &fleet.Selector{MatchLabels: map[string]string{"on": "types"}},
				ClusterTypeSelector:      everywhere,
			},
			{Name: "nightly", Effect: "schedule", DeploymentTargetSelector: &fleet.Selector{MatchLabels: map[string]string{"app": "reports"}},
				ClusterTypeSelector: &fleet.Selector{MatchLabels: map[string]string{"cluster-type": "large"}}},
		},
		ConfigContainers: []fleet.ConfigContainer{
			{Name: "east", Labels: fleet.Labels{"region": "east"}},
			{Name: "office", Labels: fleet.Labels{"workspace": "office"}, Priority: "1"},
			{Name: "platform"},
			{Name: "west", Labels: fleet.Labels{"region": "west"}},
		},
	}
	return f, fleet.Config{
		"east": `{"DATABASE_URL":"postgres://east"}`, "office": `{"PRINTER":"p1"}`,
		"platform": `{"EMERGENCY":"0911","LIMITS":{"cpu":2}}`, "west": `{"DATABASE_URL":"postgres://west","WEST":"yes"}`,
	}
}

func TestLineNamesChangePlaceAndCause(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*fleet.Fleet, fleet.Config)
		want   []string
	}{
		"nothing": {func(*fleet.Fleet, fleet.Config) {}, nil},
		"a value of a container": {
			func(_ *fleet.Fleet, config fleet.Config) { config["east"] = `{"DATABASE_URL":"postgres://far-east"}` },
			[]string{
				"count hosts=3 changed=4",
				"file files=platform-config.yaml keys=data.DATABASE_URL at=clusters/drone-a/hello-edge,large/hello-live,large/reports-nightly,small/hello-live by=config_container:east",
			},
		},
		"values of two containers, one for a single assignment": {
			func(_ *fleet.Fleet, config fleet.Config) {
				config["platform"] = `{"EMERGENCY":"112","LIMITS":{"cpu":2},"NEW":1}`
				config["office"] = `{}`
			},
			[]string{
				"count hosts=3 changed=4",
				"file files=platform-config.yaml keys=data.EMERGENCY,data.NEW:new at=clusters/drone-a/hello-edge,large/hello-live,large/reports-nightly,small/hello-live by=config_container:platform",
				"file files=platform-config.yaml keys=data.PRINTER:removed at=large/reports-nightly by=config_container:office",
			},
		},
		"a new and a removed container": {
			func(f *fleet.Fleet, config fleet.Config) {
				f.ConfigContainers[1] = fleet.ConfigContainer{Name: "night", Labels: fleet.Labels{"app": "reports"}}
				delete(config, "office")
				config["night"] = `{"HOURS":"8"}`
			},
			[]string{
				"count hosts=1 changed=1",
				"file files=platform-config.yaml keys=data.HOURS:new at=large/reports-nightly by=config_container:night:new",
				"file files=platform-config.yaml keys=data.PRINTER:removed at=large/reports-nightly by=config_container:office:removed",
			},
		},
		"a tag": {
			func(f *fleet.Fleet, _ fleet.Config) { f.Workloads[1].DeploymentTargets[0].Manifests.Tag = "v1.1.0" },
			[]string{
				"count hosts=1 changed=1",
				"file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/reports-nightly by=workload:reports",
			},
		},
		"a tag and a label of the host in the same file": {
			func(f *fleet.Fleet, _ fleet.Config) {
				f.Workloads[1].DeploymentTargets[0].Manifests.Tag = "v1.1.0"
				f.ClusterTypes[0].Labels = fleet.Labels{"region": "east", "tier": "gold"}
			},
			[]string{
				"count hosts=1 changed=1",
				"file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/reports-nightly by=workload:reports,cluster_type:large",
			},
		},
		"a tag and a quota": {
			func(f *fleet.Fleet, _ fleet.Config) {
				f.Workloads[1].DeploymentTargets[0].Manifests.Tag = "v1.1.0"
				f.Workspaces[1].ResourceQuota = map[string]string{"limits.cpu": "16"}
			},
			[]string{
				"count hosts=1 changed=1",
				"file files=policy.yaml keys=new_file at=large/reports-nightly by=workspace:office",
				"file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/reports-nightly by=workload:reports",
			},
		},
		"a tag and a value": {
			func(f *fleet.Fleet, config fleet.Config) {
				f.Workloads[1].DeploymentTargets[0].Manifests.Tag = "v1.1.0"
				config["office"] = `{"PRINTER":"p2"}`
			},
			[]string{
				"count hosts=1 changed=1",
				"file files=platform-config.yaml keys=data.PRINTER at=large/reports-nightly by=config_container:office",
				"file files=reconciler.yaml keys=GitRepository spec.ref.tag at=large/reports-nightly by=workload:reports",
			},
		},
		"a value and a label that selects another container": {
			func(f *fleet.Fleet, config fleet.Config) {
				f.ClusterTypes[0].Labels = fleet.Labels{"region": "west"}
				config["platform"] = `{"EMERGENCY":"112","LIMITS":{"cpu":2}}`
			},
			[]string{
				"count hosts=3 changed=4",
				"file files=platform-config.yaml keys=data.EMERGENCY at=clusters/drone-a/hello-edge,large/hello-live,large/reports-nightly,small/hello-live by=config_container:platform",
				"file files=platform-config.yaml keys=data.DATABASE_URL,data.WEST:new at=large/hello-live,large/reports-nightly by=cluster_type:large",
			},
		},
		"a label that selects another container": {
			func(f *fleet.Fleet, _ fleet.Config) { f.ClusterTypes[0].Labels = fleet.Labels{"region": "west"} },
			[]string{
				"count hosts=1 changed=2",
				"file files=platform-config.yaml keys=data.DATABASE_URL,data.WEST:new at=large/hello-live,large/reports-nightly by=cluster_type:large",
			},
		},
		"a quota": {
			func(f *fleet.Fleet, _ fleet.Config) {
				f.Workspaces[0].ResourceQuota = map[string]string{"limits.cpu": "16"}
			},
			[]string{
				"count hosts=3 changed=3",
				"file files=policy.yaml keys=new_file at=clusters/drone-a/hello-edge,large/hello-live,small/hello-live by=workspace:kaizen",
			},
		},
		"a template": {
			func(f *fleet.Fleet, _ fleet.Config) {
				f.Templates = []fleet.Template{{Name: "configmap", Type: "config", Manifests: []string{
					"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: platform-config\n  namespace: {{ .Namespace }}\ndata:\n{{ stringify .ConfigData | indent 2 }}",
				}}}
			},
			[]string{
				"count hosts=3 changed=4",
				"file files=platform-config.yaml keys=metadata.labels:removed at=clusters/drone-a/hello-edge,large/hello-live,large/reports-nightly,small/hello-live by=template:configmap:new",
			},
		},
		"a wider policy and a removed target": {
			func(f *fleet.Fleet, _ fleet.Config) {
				f.TargetPolicies[2].ClusterTypeSelector = &fleet.Selector{}
				f.Workloads[0].DeploymentTargets = f.Workloads[0].DeploymentTargets[:1]
			},
			[]string{
				"count hosts=2 added=1 removed=1",
				"removal at=clusters/drone-a/hello-edge by=workload:hello",
				"addition at=small/reports-nightly by=target_policy:nightly",
			},
		},
		"a new host": {
			func(f *fleet.Fleet, _ fleet.Config) {
				medium := f.ClusterTypes[0]
				medium.Name = "medium"
				f.ClusterTypes = append(f.ClusterTypes, medium)
			},
			[]string{
				"count hosts=1 added=1",
				"addition at=medium/hello-live by=cluster_type:medium:new",
			},
		},
		"ten new hosts": {
			func(f *fleet.Fleet, _ fleet.Config) {
				for i := range 10 {
					medium := f.ClusterTypes[0]
					medium.Name = fmt.Sprintf("medium-%d", i)
					f.ClusterTypes = append(f.ClusterTypes, medium)
				}
			},
			[]string{
				"count hosts=10 added=10",
				"addition at=medium-0/hello-live,medium-1/hello-live,8 by=cluster_type:medium-0:new,cluster_type:medium-1:new,cluster_type:medium-2:new,cluster_type:medium-3:new,cluster_type:medium-4:new,cluster_type:medium-5:new,cluster_type:medium-6:new,cluster_type:medium-7:new,cluster_type:medium-8:new,cluster_type:medium-9:new",
			},
		},
		"two new hosts": {
			func(f *fleet.Fleet, _ fleet.Config) {
				for _, name := range []string{"medium", "tiny"} {
					other := f.ClusterTypes[0]
					other.Name = name
					f.ClusterTypes = append(f.ClusterTypes, other)
				}
			},
			[]string{
				"count hosts=2 added=2",
				"addition at=medium/hello-live,tiny/hello-live by=cluster_type:medium:new,cluster_type:tiny:new",
			},
		},
		"one key of an object as a value": {
			func(_ *fleet.Fleet, config fleet.Config) {
				config["platform"] = `{"EMERGENCY":"0911","LIMITS":{"cpu":3}}`
			},
			[]string{
				"count hosts=3 changed=4",
				"file files=platform-config.yaml keys=data.LIMITS.cpu at=clusters/drone-a/hello-edge,large/hello-live,large/reports-nightly,small/hello-live by=config_container:platform",
			},
		},
		"an excluding policy": {
			func(f *fleet.Fleet, _ fleet.Config) {
				f.TargetPolicies = append(f.TargetPolicies, fleet.TargetPolicy{
					Name: "quiet", Effect: "exclude", Workspace: "kaizen", ClusterTypeSelector: &fleet.Selector{},
				})
			},
			[]string{
				"count hosts=2 removed=2",
				"removal at=large/hello-live,small/hello-live by=target_policy:quiet:new",
			},
		},
		"a description": {
			func(f *fleet.Fleet, _ fleet.Config) { f.ClusterTypes[0].Description = "big ones" },
			nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, config := sample()
			before := mustRender(t, f, config)
			f, config = sample()
			test.change(f, config)
			equalLines(t, summarize(before, mustRender(t, f, config)), test.want)
		})
	}
}

func TestWorkloadIsTheCauseInItsDependents(t *testing.T) {
	t.Parallel()
	sampleWithRequirement := func() (*fleet.Fleet, fleet.Config) {
		f, config := sample()
		for i := range f.ClusterTypes {
			f.ClusterTypes[i].Reconciler = "argocd" // its folders depend on the length of the chain of requirements
		}
		base := f.Workloads[0].DeploymentTargets[0]
		f.Workloads = append(f.Workloads, fleet.Workload{Name: "base", Workspace: "kaizen", DeploymentTargets: []fleet.DeploymentTarget{base}})
		f.Workloads[1].Requires = []string{"hello"}
		return f, config
	}
	f, config := sampleWithRequirement()
	before := mustRender(t, f, config)
	f, config = sampleWithRequirement()
	f.Workloads[0].Requires = []string{"base"}
	after := mustRender(t, f, config)
	lines := changes.Summarize(before.version, after.version, foldersOf(before, after), changes.Notes{})
	if len(lines) < 2 || lines[0].Counts != (changes.Counts{Hosts: 3, Changed: 4}) {
		t.Errorf("%q", formatLines(lines))
	}
	for i := range lines[1:] {
		if causes := lines[i+1].Causes; !slices.Equal(causes, []changes.Cause{{Kind: changes.ByWorkload, Name: "hello"}}) {
			t.Error(formatLine(&lines[i+1]))
		}
	}
}

func equalLines(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// oneFile returns a folder with one file.
func oneFile(name, content string) []folder.File {
	return []folder.File{{Name: name, Content: []byte(content)}}
}

func TestCausesAreNotInvented(t *testing.T) {
	t.Parallel()
	f, config := sample()
	version := mustRender(t, f, config).version
	newer := *version
	newer.Provider = "1.3.0"
	older := *version
	older.Provider = "1.2.0"
	interval := changes.FolderChange{
		Key:    folder.Key{Host: "large", DeploymentTarget: "hello-live"},
		Before: oneFile("reconciler.yaml", "spec:\n  interval: 1m\n"), After: oneFile("reconciler.yaml", "spec:\n  interval: 2m\n"),
	}
	byHand := interval
	byHand.Drift = "by hand, since commit 1a2b3c4d"
	for name, test := range map[string]struct {
		before, after *changes.Version
		folder        changes.FolderChange
		notes         changes.Notes
		want          string
	}{
		"the former fleet is unknown":       {nil, version, interval, changes.Notes{}, "file files=reconciler.yaml keys=spec.interval at=large/hello-live"},
		"nothing changed in the fleet":      {version, version, interval, changes.Notes{}, "file files=reconciler.yaml keys=spec.interval at=large/hello-live"},
		"another version of the provider":   {&older, &newer, interval, changes.Notes{}, "file files=reconciler.yaml keys=spec.interval at=large/hello-live by=provider:1.2.0:1.3.0"},
		"the same version of the provider":  {&newer, &newer, interval, changes.Notes{}, "file files=reconciler.yaml keys=spec.interval at=large/hello-live"},
		"somebody changed it by hand":       {version, version, byHand, changes.Notes{}, "file files=reconciler.yaml keys=spec.interval at=large/hello-live by=drift:by hand, since commit 1a2b3c4d"},
		"a lost state and a change by hand": {nil, version, byHand, changes.Notes{}, "file files=reconciler.yaml keys=spec.interval at=large/hello-live by=drift:by hand, since commit 1a2b3c4d"},
		"an earlier commit is wanted again": {version, version, interval, changes.Notes{RolledBack: "1a2b3c4d"}, "file files=reconciler.yaml keys=spec.interval at=large/hello-live by=rollback:1a2b3c4d"},
		"the owner has a new name":          {&newer, &newer, interval, changes.Notes{HandedOver: "dev"}, "file files=reconciler.yaml keys=spec.interval at=large/hello-live by=owner_name"},
		"a folder that somebody removed": {
			version, version, changes.FolderChange{Key: folder.Key{Host: "large", DeploymentTarget: "hello-live"}, Added: true, Drift: "removed by hand, since commit 1a2b3c4d"},
			changes.Notes{}, "addition at=large/hello-live by=drift:removed by hand, since commit 1a2b3c4d",
		},
		"a first plan": {
			nil, version, changes.FolderChange{Key: folder.Key{Host: "large", DeploymentTarget: "hello-live"}, Added: true}, changes.Notes{},
			"addition at=large/hello-live by=target_policy:hellos",
		},
		"an old location is cleared": {
			version, version, changes.FolderChange{Key: folder.Key{Host: "large", DeploymentTarget: "hello-live"}, Removed: true, Location: "https://git.example.com/old (main)"},
			changes.Notes{}, "removal at=large/hello-live location=https://git.example.com/old (main)",
		},
		"an unknown value": {
			version, version, changes.FolderChange{Key: folder.Key{Host: "large", DeploymentTarget: "hello-live"}, WaitsFor: `config container "east"`},
			changes.Notes{}, `wait at=large/hello-live names=config container "east"`,
		},
		"a change of attributes": {
			version, version, changes.FolderChange{Key: folder.Key{Host: "large", DeploymentTarget: "hello-live"}, Drift: "by hand, since commit 1a2b3c4d"},
			changes.Notes{}, "file keys=attributes at=large/hello-live by=drift:by hand, since commit 1a2b3c4d",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lines := formatLines(changes.Summarize(test.before, test.after, []changes.FolderChange{test.folder}, test.notes))
			if len(lines) < 2 || lines[len(lines)-1] != test.want {
				t.Errorf("got %q, want %q", lines, test.want)
			}
		})
	}
}

func TestNotesAreLines(t *testing.T) {
	t.Parallel()
	equalLines(t, formatLines(changes.Summarize(nil, nil, nil, changes.Notes{
		Total: 24, HandedOver: "dev", Repaired: []string{"small"}, Lines: []string{"stage edge waits\nfor 3 clusters"},
	})), []string{
		"count total=24",
		"handover names=dev",
		"repair names=small",
		"note text=stage edge waits\nfor 3 clusters",
	})
	if lines := changes.Summarize(nil, nil, nil, changes.Notes{Total: 24}); lines != nil {
		t.Errorf("got %q without changes", formatLines(lines))
	}
}

func TestHostileTextIsOneShortLine(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 10_000)
	folders := []changes.FolderChange{
		{Key: folder.Key{Host: "large\n- all", DeploymentTarget: long}, Removed: true},
		{
			Key:    folder.Key{Host: "a\u202eb", DeploymentTarget: "hello"},
			Before: oneFile("x\r.json", "{}"),
			After:  oneFile("x\r.json", `{"`+long+`":{},"a\nb":1,"a.b":{"c\u0000":1}}`),
		},
		{Key: folder.Key{Host: "a", DeploymentTarget: "hello"}, WaitsFor: "\x1b[31m", Drift: "\n"},
	}
	for _, line := range changes.English(changes.Summarize(nil, nil, folders, changes.Notes{HandedOver: "\n", Repaired: []string{"\a"}})) {
		if len(line) > 1000 || strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("%q", line)
		}
	}
}

func TestManyChangesAreFewLines(t *testing.T) {
	t.Parallel()
	var folders []changes.FolderChange
	for i := range 5000 {
		folder := changes.FolderChange{Key: folder.Key{Host: fmt.Sprintf("host-%04d", i/3), DeploymentTarget: fmt.Sprintf("target-%04d", i)}}
		switch i % 5 {
		case 0:
			folder.Removed, folder.Location = true, fmt.Sprintf("location %d", i)
		case 1:
			folder.Added = true
		case 2:
			folder.WaitsFor = fmt.Sprintf("thing %d", i)
		case 3:
			folder.Drift = fmt.Sprintf("by hand, since commit %d", i)
			fallthrough
		default:
			name := fmt.Sprintf("file-%d.json", i%700)
			folder.Before, folder.After = oneFile(name, "{}"), oneFile(name, fmt.Sprintf(`{"key-%d":1}`, i))
		}
		folders = append(folders, folder)
	}
	notes := changes.Notes{Lines: slices.Repeat([]string{"note text=a line"}, 300)}
	lines := changes.Summarize(nil, nil, folders, notes)
	if len(lines) > changes.MaxLines {
		t.Errorf("%d lines", len(lines))
	}
	counts := map[changes.LineKind]int{}
	for i := range lines {
		counts[lines[i].Kind] += len(lines[i].Assignments)
	}
	for _, kind := range []changes.LineKind{changes.RemovalLine, changes.AdditionLine, changes.WaitLine} {
		if counts[kind] != 1000 {
			t.Errorf("%d of the kind %s, want 1000", counts[kind], kind)
		}
	}
	slices.Reverse(folders)
	equalLines(t, formatLines(changes.Summarize(nil, nil, folders, notes)), formatLines(lines))
}
