package adopt_test

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/adopt"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

const (
	clusterSecret = `
apiVersion: v1
kind: Secret
metadata: {name: cluster-%[1]s, namespace: argocd, labels: {argocd.argoproj.io/secret-type: cluster, %[3]s}, annotations: {repo: https://example.com/%[1]s}}
stringData: {name: %[1]s, server: "%[2]s"}
---`
	applicationSet = `
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: web, namespace: argocd}
spec:
  %s
  template:
    metadata: {name: '%s', labels: {team: shop}}
    spec:
      project: default
      source: {repoURL: https://example.com/apps, path: %s, targetRevision: v1.2.0}
      destination: {%s, namespace: web}
`
)

// clustersOfAHub has the Secrets of four clusters in the form of Argo CD.
var clustersOfAHub = fmt.Sprintf(clusterSecret, "eu-1", "https://10.0.0.1:6443", "env: prod, region: eu") +
	fmt.Sprintf(clusterSecret, "eu-2", "https://10.0.0.2:6443", "env: prod, region: eu") +
	fmt.Sprintf(clusterSecret, "us-1", "https://10.0.0.3:6443", "env: prod, region: us") +
	fmt.Sprintf(clusterSecret, "dev-1", "https://10.0.0.4:6443", "env: dev, region: eu")

// applicationsOf returns host, name, path and destination of each rendered Application.
func applicationsOf(all []renderedObject) (names []string) {
	for _, object := range all {
		spec := object.fields["spec"]
		name := strings.TrimPrefix(identity(object.fields), "argoproj.io ")
		names = append(names, fmt.Sprint(object.host, ": ", name, " ", fieldOf(spec, "source.path"), " ", fieldOf(spec, "destination")))
	}
	slices.Sort(names)
	return names
}

func TestApplicationSetsBecomePolicies(t *testing.T) {
	for name, test := range map[string]struct {
		documents      map[string]any
		want, rendered []string
	}{
		"clusters by their labels": {
			documents: map[string]any{"clusters.yaml": clustersOfAHub, "web.yaml": fmt.Sprintf(applicationSet,
				"generators: [{clusters: {selector: {matchLabels: {env: prod}}}}]", "{{name}}-web", "'envs/{{metadata.labels.region}}'", "name: '{{name}}'")},
			want: []string{
				"cluster type dev-1 map[env:dev region:eu]", "cluster type eu-1 map[env:prod region:eu]", "cluster type eu-2 map[env:prod region:eu]", "cluster type us-1 map[env:prod region:us]",
				"cluster dev-1 of dev-1", "cluster eu-1 of eu-1", "cluster eu-2 of eu-2", "cluster us-1 of us-1",
				"platform/web-eu-1 Application map[path:envs/eu repo:https://example.com/apps storage:git tag:v1.2.0] in web prod-eu",
				"platform/web-us-1 Application map[path:envs/us repo:https://example.com/apps storage:git tag:v1.2.0] in web us",
				"policy prod-eu map[match_labels:map[env:prod region:eu]]", "policy us map[match_labels:map[region:us]]",
			},
			rendered: []string{
				"eu-1: Application argocd/eu-1-web envs/eu map[name:eu-1 namespace:web]", "eu-2: Application argocd/eu-2-web envs/eu map[name:eu-2 namespace:web]",
				"us-1: Application argocd/us-1-web envs/us map[name:us-1 namespace:web]",
			},
		},
		"templates of Go, with the server and a path of each cluster": {
			documents: map[string]any{"clusters.yaml": clustersOfAHub, "web.yaml": fmt.Sprintf(applicationSet,
				"goTemplate: true\n  goTemplateOptions: ['missingkey=error']\n  generators: [{clusters: {selector: {matchLabels: {env: prod}}}}]",
				"{{ .name | normalize }}-web", "'{{ printf \"envs/%s\" .name }}'", "server: '{{ .server }}'")},
			want: []string{
				"cluster type dev-1 map[env:dev region:eu]", "cluster type eu-1 map[env:prod region:eu]", "cluster type eu-2 map[env:prod region:eu]", "cluster type us-1 map[env:prod region:us]",
				"cluster dev-1 of dev-1", "cluster eu-1 of eu-1", "cluster eu-2 of eu-2", "cluster us-1 of us-1",
				"platform/web-default Application map[repo:https://example.com/apps storage:git tag:v1.2.0] in web prod",
				"policy prod map[match_labels:map[env:prod]]",
			},
			rendered: []string{
				"eu-1: Application argocd/eu-1-web envs/eu-1 map[namespace:web server:https://10.0.0.1:6443]",
				"eu-2: Application argocd/eu-2-web envs/eu-2 map[namespace:web server:https://10.0.0.2:6443]",
				"us-1: Application argocd/us-1-web envs/us-1 map[namespace:web server:https://10.0.0.3:6443]",
			},
		},
		"a list of clusters": {
			documents: map[string]any{"web.yaml": fmt.Sprintf(applicationSet,
				`generators: [{list: {elements: [{cluster: a, url: "https://1.2.3.4", tier: edge}, {cluster: b, url: "https://2.3.4.5", tier: edge}, {cluster: c, url: "https://3.4.5.6", tier: core}]}}]`,
				"{{cluster}}-guestbook", "'guestbook/{{tier}}'", "server: '{{url}}'")},
			want: []string{
				"cluster type a map[tier:edge]", "cluster type b map[tier:edge]", "cluster type c map[tier:core]", "cluster a of a", "cluster b of b", "cluster c of c",
				"platform/guestbook-a Application map[path:guestbook/edge repo:https://example.com/apps storage:git tag:v1.2.0] in web edge",
				"platform/guestbook-c Application map[path:guestbook/core repo:https://example.com/apps storage:git tag:v1.2.0] in web core",
				"policy core map[match_labels:map[tier:core]]", "policy edge map[match_labels:map[tier:edge]]",
			},
			rendered: []string{
				"a: Application argocd/a-guestbook guestbook/edge map[namespace:web server:https://1.2.3.4]",
				"b: Application argocd/b-guestbook guestbook/edge map[namespace:web server:https://2.3.4.5]",
				"c: Application argocd/c-guestbook guestbook/core map[namespace:web server:https://3.4.5.6]",
			},
		},
		"a reserved label, and a label with the value true": {
			documents: map[string]any{
				"clusters.yaml": fmt.Sprintf(clusterSecret, "a", "https://10.0.0.1", "environment: prod, dns: 'true'") + fmt.Sprintf(clusterSecret, "b", "https://10.0.0.2", "environment: dev, dns: 'true'") +
					fmt.Sprintf(clusterSecret, "c", "https://10.0.0.3", "environment: dev"),
				"web.yaml": fmt.Sprintf(applicationSet, "generators: [{clusters: {selector: {matchLabels: {environment: prod}}}}, {clusters: {selector: {matchLabels: {environment: dev, dns: 'true'}}}}]", "{{name}}-web", "x", "name: '{{name}}'"),
			},
			want: []string{
				"cluster type a map[dns:true]", "cluster type b map[dns:true]", "cluster type c <nil>", "cluster a of a", "cluster b of b", "cluster c of c",
				"platform/web-default Application map[path:x repo:https://example.com/apps storage:git tag:v1.2.0] in web dns", "policy dns map[match_labels:map[dns:true]]",
			},
			rendered: []string{"a: Application argocd/a-web x map[name:a namespace:web]", "b: Application argocd/b-web x map[name:b namespace:web]"},
		},
		"folders of the repository with clusters": {
			documents: map[string]any{
				"clusters.yaml": clustersOfAHub, "apps/web/a.yaml": "a: 1", "apps/db/values.txt": "b", "apps/old/a.yaml": "a: 1", "apps/.hidden/a.yaml": "a: 1", "apps/web/deep/a.yaml": "a: 1",
				"set.yaml": fmt.Sprintf(applicationSet, `generators:
  - matrix:
      generators:
      - git: {repoURL: https://example.com/apps, directories: [{path: apps/*}, {path: apps/old, exclude: true}]}
      - clusters: {selector: {matchLabels: {region: '{{path[0]}}'}}, values: {at: '{{name}}.{{path.basename}}'}}
  - matrix:
      generators:
      - git: {repoURL: https://example.com/apps, directories: [{path: apps/*}, {path: apps/old, exclude: true}]}
      - clusters: {selector: {matchLabels: {region: us}}, values: {at: '{{name}}.{{path.basename}}'}}`, "{{values.at}}", "'{{path}}'", "name: '{{name}}'"),
			},
			want: []string{
				"cluster type dev-1 map[env:dev region:eu]", "cluster type eu-1 map[env:prod region:eu]", "cluster type eu-2 map[env:prod region:eu]", "cluster type us-1 map[env:prod region:us]",
				"cluster dev-1 of dev-1", "cluster eu-1 of eu-1", "cluster eu-2 of eu-2", "cluster us-1 of us-1",
				"platform/us-1-db-default Application map[path:apps/db repo:https://example.com/apps storage:git tag:v1.2.0] in web us",
				"platform/us-1-web-default Application map[path:apps/web repo:https://example.com/apps storage:git tag:v1.2.0] in web us",
				"policy us map[match_labels:map[region:us]]",
			},
			rendered: []string{
				"us-1: Application argocd/us-1.db apps/db map[name:us-1 namespace:web]", "us-1: Application argocd/us-1.web apps/web map[name:us-1 namespace:web]",
			},
		},
		"files of the repository": {
			documents: map[string]any{
				"envs/a/config.json": `{"cluster": {"name": "a", "replicas": 3}}`, "envs/b/config.json": `{"cluster": {"name": "b", "replicas": 3}}`, "envs/b/other.json": "{",
				"set.yaml": fmt.Sprintf(applicationSet, "generators: [{git: {repoURL: https://example.com/apps, files: [{path: 'envs/**/config.json'}]}}]",
					"{{cluster.name}}-{{cluster.replicas}}", "'{{path}}'", "name: '{{cluster.name}}'"),
			},
			want: []string{
				"cluster type a <nil>", "cluster type b <nil>", "cluster a of a", "cluster b of b",
				"platform/3-default Application map[repo:https://example.com/apps storage:git tag:v1.2.0] in web everywhere",
				"policy everywhere map[]",
			},
			rendered: []string{"a: Application argocd/a-3 envs/a map[name:a namespace:web]", "b: Application argocd/b-3 envs/b map[name:b namespace:web]"},
		},
		"merged values of clusters, and the hub itself": {
			documents: map[string]any{
				"clusters.yaml": fmt.Sprintf(clusterSecret, "eu-1", "https://10.0.0.1:6443", "tier: edge"),
				"set.yaml": fmt.Sprintf(applicationSet, `generators:
  - merge:
      mergeKeys: [server]
      generators:
      - clusters: {values: {version: v1}}
      - clusters: {selector: {matchLabels: {tier: edge}}, values: {version: v2}}`, "{{name}}-web", "'{{values.version}}'", "server: '{{server}}'"),
			},
			want: []string{
				"cluster type eu-1 map[tier:edge]", "cluster type prod <nil>", "cluster eu-1 of eu-1",
				"platform/web-eu-1 Application map[path:v2 repo:https://example.com/apps storage:git tag:v1.2.0] in web edge",
				"platform/web-prod Application map[path:v1 repo:https://example.com/apps storage:git tag:v1.2.0] in web prod",
				"policy edge map[match_labels:map[tier:edge]]", "policy prod map[match_labels:map[cluster-type:prod]]",
			},
			rendered: []string{
				"eu-1: Application argocd/eu-1-web v2 map[namespace:web server:https://10.0.0.1:6443]",
				"prod: Application argocd/in-cluster-web v1 map[namespace:web server:https://kubernetes.default.svc]",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			result, all := adoptAndRender(t, test.documents, nil)
			got := slices.DeleteFunc(describe(result), func(line string) bool { return strings.HasPrefix(line, "listed ") })
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
			if applications := applicationsOf(all); !reflect.DeepEqual(applications, test.rendered) {
				t.Errorf("got Applications\n%s\nwant\n%s", strings.Join(applications, "\n"), strings.Join(test.rendered, "\n"))
			}
			for _, object := range all {
				if finalizers := fmt.Sprint(fieldOf(object.fields["metadata"], "finalizers")); finalizers != "[resources-finalizer.argocd.argoproj.io]" {
					t.Errorf("got finalizers %s", finalizers)
				}
			}
			if listed := fmt.Sprint(result.Listed); !strings.Contains(
				listed,
				fmt.Sprintf("makes %d Applications, which are adopted in its place", len(all)),
			) {
				t.Errorf("got listed objects %s", listed)
			}
		})
	}
}

// TestUnsupportedApplicationSetsAreAdoptedUnchanged adopts ApplicationSets unchanged if Flotilla cannot expand them.
func TestUnsupportedApplicationSetsAreAdoptedUnchanged(t *testing.T) {
	many := "[" + strings.Repeat("{a: '1'}, ", 40) + "]"
	for name, test := range map[string]struct{ spec, name, path, want string }{
		"missing clusters":          {"generators: [{clusters: {}}]", "{{name}}", "x", "its generator clusters needs the clusters of Argo CD: add their Secrets to the documents, with labels, data.name and data.server, and without data.config"},
		"another repository":        {"generators: [{git: {repoURL: https://example.com/other, revision: HEAD, directories: [{path: '*'}]}}]", "{{path}}", "x", `its generator git reads "https://example.com/other", which is not the repository of the documents`},
		"pull requests":             {"generators: [{pullRequest: {github: {owner: a, repo: b}}}]", "{{number}}", "x", "its generator pullRequest asks others than the documents"},
		"two kinds":                 {"generators: [{list: {elements: []}, clusters: {}}]", "a", "x", "one of its generators must have one kind"},
		"a patch":                   {"templatePatch: '{}'\n  generators: [{list: {elements: [{a: b}]}}]", "a", "x", "Applications cannot say its templatePatch"},
		"an order":                  {"strategy: {type: RollingSync}\n  generators: [{list: {elements: [{a: b}]}}]", "a", "x", "Applications cannot say its strategy"},
		"a template of a generator": {"generators: [{list: {elements: [{a: b}], template: {metadata: {name: b}, spec: {project: default, destination: {}}}}}]", "a", "x", "a generator has a template of its own"},
		"no elements":               {"generators: [{list: {elements: []}}]", "a", "x", "it makes no Application from the documents"},
		"no text":                   {"generators: [{list: {elements: [{a: 1}]}}]", "a", "x", `"a" of an element of its list is no text, which Argo CD refuses without goTemplate`},
		"one name":                  {"generators: [{list: {elements: [{a: b}, {a: c}]}}]", "a", "x", `it makes two Applications with the name "a"`},
		"no name":                   {"generators: [{list: {elements: [{a: B_C}]}}]", "{{a}}", "x", `the Application "B_C" that it makes metadata.name `},
		"a missing key":             {"goTemplate: true\n  generators: [{list: {elements: [{a: b}]}}]", "{{ .b }}", "x", "its template cannot be rendered: line 1, {{ .b }}: .b has no value"},
		"no function":               {"goTemplate: true\n  generators: [{list: {elements: [{a: b}]}}]", "{{ env .a }}", "x", `its template cannot be rendered: line 1: function "env" is not for templates`},
		"a loop without end":        {"goTemplate: true\n  generators: [{list: {elements: [{a: b}]}}]", "{{ range until 100000 }}{{ range until 100000 }}{{ end }}{{ end }}", "x", "its template cannot be rendered: line 1, {{ range until 100000 }}: loops and calls of templates take more than 100000 steps"},
		"a growing text":            {"goTemplate: true\n  generators: [{list: {elements: [{a: b}]}}]", `{{ $x := "aaaa" }}{{ range until 99 }}{{ $x = printf "%s%s" $x $x }}{{ end }}`, "x", "a value is larger than 1 MiB"},
		"a template of itself":      {"goTemplate: true\n  generators: [{list: {elements: [{a: b}]}}]", `{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}`, "x", "templates call each other more than 100 levels deep"},
		"1600 Applications":         {"generators: [{matrix: {generators: [{list: {elements: " + many + "}}, {list: {elements: " + strings.ReplaceAll(many, "a:", "b:") + "}}]}}]", "a", "x", "it makes more than 1000 Applications"},
		"generators in each other":  {"generators: [" + strings.Repeat("{matrix: {generators: [", 4) + "{}, {}" + strings.Repeat("]}}", 4) + "]", "a", "x", "its generator matrix must have two generators"},
		"deep generators":           {"generators: [" + strings.Repeat("{merge: {mergeKeys: [a], generators: [", 4) + "{}, {}" + strings.Repeat("]}}", 3) + "]}}]", "a", "x", "its generator merge must have mergeKeys and two generators"},
		"an open brace":             {"generators: [{list: {elements: [{a: b}]}}]", "{{a}}-{{b", "x", `its template has "{{a}}-{{b" without }}`},
		"a large number":            {"goTemplate: true\n  generators: [{list: {elements: [{a: 10000000}]}}]", "a", "x", "the number 1e+07 is written in another form by Argo CD: write it as a text"},
	} {
		t.Run(name, func(t *testing.T) {
			documents := map[string]any{"a.yaml": fmt.Sprintf(applicationSet, test.spec, test.name, test.path, "name: x")}
			result, all := adoptAndRender(t, documents, map[string]any{"repository": map[string]any{"url": "https://example.com/apps"}})
			if len(all) != 1 || len(result.Listed) != 2 && len(result.Listed) != 1 || !result.Listed[0].Taken {
				t.Fatalf("got %d rendered objects and listed objects %.1000v", len(all), result.Listed)
			}
			found := false
			for _, listed := range result.Listed {
				found = found ||
					listed.Taken && strings.HasPrefix(listed.Reason, "is taken as it is, and goes on to choose its clusters: ") &&
						strings.Contains(listed.Reason, test.want)
			}
			if !found {
				t.Errorf("got listed objects %v, want %s", result.Listed, test.want)
			}
			value, err := fleet.ParseYAML(documents["a.yaml"].(string))
			if err != nil || !reflect.DeepEqual(value.(map[string]any)["spec"], all[0].fields["spec"]) {
				t.Errorf("got spec %v, want %v, %v", all[0].fields["spec"], value, err)
			}
		})
	}
}

// TestLaterGeneratorsOverrideWithEmptyValues merges false, 0 and an empty text over other values, as Argo CD does.
func TestLaterGeneratorsOverrideWithEmptyValues(t *testing.T) {
	t.Parallel()
	const on, off = "{name: a, prune: true, retries: 5, note: x, more: {deep: y, kept: z}}", "{name: a, prune: false, retries: 0, note: '', more: {deep: ''}}"
	for name, generator := range map[string]string{
		"merge":  "{merge: {mergeKeys: [name], generators: [{list: {elements: [" + on + "]}}, {list: {elements: [" + off + "]}}]}}",
		"matrix": "{matrix: {generators: [{list: {elements: [" + off + "]}}, {list: {elements: [" + on + "]}}]}}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documents := map[string]any{"a.yaml": fmt.Sprintf(applicationSet, "goTemplate: true\n  generators: ["+generator+"]",
				"{{.name}}", "'p-{{.prune}}-{{.retries}}-{{.note}}-{{.more.deep}}-{{.more.kept}}'", "name: x")}
			result, all := adoptAndRender(t, documents, nil)
			if text := fmt.Sprint(applicationsOf(all)); !strings.Contains(text, " p-false-0---z ") {
				t.Errorf("got Applications %s, listed objects %v", text, result.Listed)
			}
		})
	}
}

// The reason for a cluster's Secret names the cluster type with its labels. The Secret of the hub may have no cluster type.
func TestSecretsOfClustersNameTheirClusterTypes(t *testing.T) {
	hub := fmt.Sprintf(clusterSecret, "central", "https://kubernetes.default.svc", "tier: core, environment: dev")
	spoke := fmt.Sprintf(clusterSecret, "Store.1", "https://10.0.0.1", "tier: edge")
	onSpoke := fmt.Sprintf(application, "one", "default", "main", "name: Store.1")
	onHub := strings.ReplaceAll(fmt.Sprintf(application, "web", "default", "main", "name: central"), "apps, path", "web, path")
	const reason, none = `is the Secret of a cluster of Argo CD: `, "no cluster type is made of it, because no adopted object is for the cluster"
	for name, test := range map[string]struct {
		documents map[string]any
		hosts     string
		want      []string
	}{
		"no Application for the hub": {
			documents: map[string]any{"clusters.yaml": hub + spoke, "web.yaml": onSpoke},
			want: []string{
				"cluster type store-1 map[tier:edge]", "Secret argocd/cluster-Store.1 " + reason + `the cluster type "store-1" has its labels`,
				"Secret argocd/cluster-central " + reason + none,
			},
		},
		"an Application for the hub": {
			documents: map[string]any{"clusters.yaml": hub, "web.yaml": onHub},
			want: []string{
				"cluster type prod map[tier:core]", "Secret argocd/cluster-central " + reason + `the cluster type "prod" has its labels without "environment"`,
			},
		},
		"an object without a cluster": {
			documents: map[string]any{"clusters.yaml": hub, "a.yaml": fmt.Sprintf(kustomization, "apps", "./apps"), "web.yaml": onHub},
			want: []string{
				"cluster type prod map[tier:core]", "Secret argocd/cluster-central " + reason + `the cluster type "prod" has its labels without "environment"`,
			},
		},
		"colliding names": {
			documents: map[string]any{"clusters.yaml": spoke + fmt.Sprintf(clusterSecret, "store-1", "https://10.0.0.2", "tier: core"), "web.yaml": onSpoke},
			want: []string{
				"cluster type store-1 map[tier:edge]", "Secret argocd/cluster-Store.1 " + reason + `the cluster type "store-1" has its labels`,
				"Secret argocd/cluster-store-1 " + reason + "another cluster has the name that its cluster type would have",
			},
		},
		"folders with labels": {
			documents: map[string]any{"clusters.yaml": hub, "eu/one/web.yaml": onHub}, hosts: "{region}/{cluster_type}",
			want: []string{
				"cluster type one map[region:eu tier:core]",
				"Secret argocd/cluster-central " + reason + `the cluster type "one" has its labels without "environment"`,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			options := map[string]any{}
			if test.hosts != "" {
				options["hosts"] = test.hosts
			}
			result, _ := adoptAndRender(t, test.documents, options)
			var got []string
			for _, line := range describe(result) {
				line = strings.TrimSuffix(strings.TrimPrefix(line, "listed clusters.yaml: "), ", and it stays where it is")
				if strings.HasPrefix(line, "cluster type ") || strings.HasPrefix(line, "Secret ") {
					got = append(got, line)
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestReasonsAreDeterministic adopts objects with several defects of one kind. Terraform refuses a function with varying results.
func TestReasonsAreDeterministic(t *testing.T) {
	t.Parallel()
	for name, spec := range map[string]string{
		"large numbers": "goTemplate: true\n  generators: [{list: {elements: [{name: a, quota: 10000000, account: 123456789012, limit: 50000000}]}}]",
		"no texts":      "generators: [{list: {elements: [{name: a, replicas: 3, port: 8080, size: 4}]}}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			documents := map[string]any{"a.yaml": fmt.Sprintf(applicationSet, spec, "a", "x", "name: x")}
			var first string
			for range 30 {
				result, _ := adoptAndRender(t, documents, map[string]any{"repository": map[string]any{"url": "https://example.com/apps"}})
				listed := fmt.Sprint(result.Listed)
				if first == "" {
					first = listed
				}
				if listed != first {
					t.Fatalf("got listed objects\n%s\nand then\n%s", first, listed)
				}
			}
		})
	}
}

// TestTheGuidesApplicationSetIsAdopted adopts the guide's ApplicationSet: with clusters as Applications, without clusters
// unchanged.
func TestTheGuidesApplicationSetIsAdopted(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "guides", "adopting.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, set, _ := strings.Cut(string(guide), "```yaml\n")
	set, _, _ = strings.Cut(set, "```")
	clusters := ""
	for name, env := range map[string]string{"eu-1": "prod", "eu-2": "prod", "dev-1": "dev"} {
		clusters += fmt.Sprintf(clusterSecret, name, "https://"+name+".example.com", "env: "+env)
	}
	result, all := adoptAndRender(t, map[string]any{"web.yaml": set, "clusters.yaml": clusters}, fleetOptions)
	var servers []string
	for _, object := range all {
		servers = append(servers, object.host+": "+identity(object.fields)+" "+fmt.Sprint(fieldOf(object.fields["spec"], "destination.server")))
	}
	slices.Sort(servers)
	want := []string{
		"eu-1: argoproj.io Application argocd/eu-1-web https://eu-1.example.com",
		"eu-2: argoproj.io Application argocd/eu-2-web https://eu-2.example.com",
	}
	if !slices.Equal(servers, want) {
		t.Errorf("got Applications %q, want %q", servers, want)
	}
	const wantReason = "makes 2 Applications, which are adopted in its place"
	if !slices.ContainsFunc(result.Listed, func(listed adopt.Listed) bool {
		return listed.Object == "ApplicationSet argocd/web" && strings.HasPrefix(listed.Reason, wantReason)
	}) {
		t.Errorf("got listed objects %v", result.Listed)
	}
	if policies := fmt.Sprint(result.Fleet["target_policies"]); !strings.Contains(policies, "match_labels:map[env:prod]") {
		t.Errorf("got policies %s", policies)
	}
	if _, all = adoptAndRender(t, map[string]any{"web.yaml": set}, fleetOptions); len(all) != 1 || all[0].fields["kind"] != "ApplicationSet" {
		t.Errorf("without clusters: got %v, want the ApplicationSet", all)
	}
}
