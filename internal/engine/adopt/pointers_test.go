package adopt_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// TestPointersMatchTheTemplates renders each built-in template with manifests of each storage. Each field in a table of
// pointers must have the value of the deployment target.
func TestPointersMatchTheTemplates(t *testing.T) {
	seen := map[string]bool{}
	for _, name := range reconciler.Agents() {
		for i, manifests := range []map[string]any{
			{"storage": "git", "repo": "https://example.com/git", "branch": "a-branch", "path": "a/path"},
			{"storage": "git", "repo": "https://example.com/git", "tag": "a-tag", "path": "a/path"},
			{"storage": "helm", "repo": "https://example.com/charts", "chart": "a-chart", "version": "1.2.3"},
			{"storage": "oci", "repo": "oci://example.com/image", "tag": "a-tag", "path": "a/path"},
		} {
			if name == "config-sync" && manifests["storage"] == "helm" { // Flotilla does not render charts for Config Sync
				continue
			}
			clusterType := map[string]any{"name": "a-type", "reconciler": name}
			target := map[string]any{"environment": "prod", "namespace": "a-namespace", "manifests": manifests}
			for _, object := range renderFleet(t, map[string]any{
				"environment": "prod", "workspaces": []any{map[string]any{"name": "team"}}, "cluster_types": []any{clusterType},
				"workloads":       []any{map[string]any{"name": "a", "workspace": "team", "deployment_targets": map[string]any{"target": target}}},
				"target_policies": []any{map[string]any{"name": "all", "cluster_type_selector": map[string]any{}}},
			}) {
				kindName, _ := object.fields["kind"].(string)
				kind := reconciler.KindNamed(kindName)
				if kind == nil {
					continue
				}
				for _, pointer := range kind.Pointers {
					value := fieldOf(object.fields["spec"], pointer.Field)
					if value == nil {
						continue
					}
					seen[kindName+" "+pointer.Field] = true
					revision := manifests["branch"]
					for _, other := range []string{"tag", "version"} {
						if manifests[other] != nil {
							revision = manifests[other]
						}
					}
					want := map[reconciler.TargetAttribute]any{
						reconciler.Repo: manifests["repo"], reconciler.Path: manifests["path"], reconciler.Chart: manifests["chart"], reconciler.Version: manifests["version"],
						reconciler.Branch: manifests["branch"], reconciler.Revision: revision, reconciler.Namespace: "a-namespace",
					}[pointer.Is]
					if pointer.Is == reconciler.Version && want == nil { // a chart in a registry has a version or a tag
						want = manifests["tag"]
					}
					if pointer.Is == reconciler.Ref {
						value, want = fmt.Sprint(value), fmt.Sprint(refOf(manifests))
					}
					if value != want {
						t.Errorf(
							"%s, manifests %d: got %s of a %s %v, want as in the table the %s, %v",
							name,
							i,
							pointer.Field,
							kindName,
							value,
							pointer.Is,
							want,
						)
					}
				}
			}
		}
	}
	for _, kind := range reconciler.Kinds() {
		for _, pointer := range kind.Pointers {
			isHelm := strings.HasPrefix(pointer.Field, "helm.") && kind.Kind != "HelmOp" // charts of Config Sync, which Flotilla does not render
			if !seen[kind.Kind+" "+pointer.Field] && !isHelm && kind.Kind != "RepoSync" {
				t.Errorf("no template writes %s of a %s", pointer.Field, kind.Kind)
			}
		}
	}
}

func refOf(manifests map[string]any) map[string]any {
	if manifests["branch"] != nil {
		return map[string]any{"branch": manifests["branch"]}
	}
	return map[string]any{"tag": manifests["tag"]}
}

// fieldOf returns the value of a field; "0" is the first element of a list.
func fieldOf(value any, field string) any {
	for step := range strings.SplitSeq(field, ".") {
		if list, isList := value.([]any); isList && step == "0" && len(list) > 0 {
			value = list[0]
			continue
		}
		object, _ := value.(map[string]any)
		value = object[step]
	}
	return value
}

func TestHostileDocumentsAreListed(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for i := 'b'; i <= 'h'; i++ {
		bomb += fmt.Sprintf("%c: &%[1]c [*%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c, *%[2]c]\n", i, i-1)
	}
	for name, test := range map[string]struct{ text, want string }{
		"a bomb of aliases": {bomb, "document 1 cannot be read, from line 1: its aliases make"},
		"too large":         {"a: " + strings.Repeat("x", 2<<20), "document 1 cannot be read, from line 1: is larger than 1.5 MiB"},
		"too many":          {strings.Repeat("a: 1\n---\n", 5000), "has 5000 YAML documents, but one text may have 4000 at most"},
		"too deep":          {strings.Repeat("[", 2000) + strings.Repeat("]", 2000), "document 1 cannot be read"},
		"a key twice":       {"a: 1\na: 2\n", `document 1 cannot be read, line 2: key "a" already set in map`},
	} {
		t.Run(name, func(t *testing.T) {
			result, all := adoptAndRender(
				t,
				map[string]any{"x.yaml": test.text, "good.yaml": fmt.Sprintf(application, "web", "default", "main", "name: berlin")},
				nil,
			)
			if len(all) != 1 || len(result.Listed) != 1 || !strings.HasPrefix(result.Listed[0].Reason, test.want) {
				t.Errorf("got %d rendered objects and listed objects %.300v", len(all), result.Listed)
			}
		})
	}
}

// TestManyObjectsAreAdopted adopts a fleet of a thousand objects on a hundred hosts.
func TestManyObjectsAreAdopted(t *testing.T) {
	documents := map[string]any{}
	for host := range 100 {
		var text strings.Builder
		for object := range 10 {
			text.WriteString("---" + fmt.Sprintf(kustomization, fmt.Sprintf("app-%d", object), "./apps"))
		}
		documents[fmt.Sprintf("clusters/site-%d/apps.yaml", host)] = text.String()
	}
	result, known, findings := adoptDocuments(
		t,
		"prod",
		documents,
		map[string]any{"repository": map[string]any{"url": "https://example.com/fleet"}},
	)
	if !known || len(findings) > 0 || len(result.Fleet["workloads"].([]any)) != 10 || len(result.Fleet["cluster_types"].([]any)) != 100 ||
		len(result.Fleet["target_policies"].([]any)) != 1 {
		t.Errorf("got known %v, findings %v", known, findings)
	}
	if _, findings := fleet.Decode(result.Fleet); len(findings) > 0 {
		t.Error(findings)
	}
}
