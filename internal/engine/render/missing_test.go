package render_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

func TestTemplatesCanTestForMissingValues(t *testing.T) {
	for template, want := range map[string]string{
		`{{ if .ConfigData.NOPE }}yes{{ else }}no{{ end }}`:                                  "no",
		`{{ if .ConfigData.NOPE.DEEPER }}yes{{ else }}no{{ end }}`:                           "no",
		`{{ with .ConfigData.NOPE }}{{ . }}{{ else }}no{{ end }}`:                            "no",
		`{{ range .ConfigData.NOPE }}{{ . }}{{ else }}none{{ end }}`:                         "none",
		`{{ .ConfigData.NOPE | default "x" }}`:                                               "x",
		`{{ default "x" .ConfigData.NOPE | upper }}`:                                         "X",
		`{{ coalesce .ConfigData.NOPE .Manifests.tag "main" }}`:                              "main",
		`{{ empty .ConfigData.NOPE }}`:                                                       "true",
		`{{ ternary .ConfigData.NOPE "x" false }}`:                                           "x",
		`{{ eq .ConfigData.NOPE "x" }} {{ ne .ConfigData.NOPE "x" }}`:                        "false true",
		`{{ eq .ConfigData.NOPE nil }}`:                                                      "true",
		`{{ not .ConfigData.NOPE }}`:                                                         "true",
		`{{ and .ConfigData.NOPE .ConfigData.NOPE.DEEPER | not }}`:                           "true",
		`{{ or .ConfigData.NOPE "x" }}`:                                                      "x",
		`{{ hasKey .ConfigData "NOPE" }} {{ hasKey .ConfigData "DEBUG" }}`:                   "false true",
		`{{ hasKey .ConfigData.NOPE "DEEPER" }}`:                                             "false",
		`{{ get .ConfigData "NOPE" }}|{{ get .ConfigData "REPLICAS" }}`:                      "|3",
		`{{ dig "LIMITS" "gpu" "none" .ConfigData }}`:                                        "none",
		`{{ dig "LIMITS" "cpu" "none" .ConfigData }} {{ dig "a" "b" 1 .ConfigData.NOPE }}`:   "500m 1",
		`{{ kindIs "invalid" .ConfigData.NOPE }} {{ kindOf .ConfigData.REPLICAS }}`:          "true int64",
		`{{ typeOf .ConfigData.RATIO }}`:                                                     "float64",
		`{{ all .ConfigData.DEBUG .ConfigData.NOPE }} {{ any .ConfigData.NOPE "x" }}`:        "false true",
		`{{ deepEqual .ConfigData.NOPE nil }} {{ has "x" .ConfigData.NOPE }}`:                "true false",
		`{{ $x := .ConfigData.NOPE }}{{ if $x }}yes{{ else }}no{{ end }}`:                    "no",
		`{{ (index .ConfigData "NOPE") | default "x" }}`:                                     "x",
		`{{ index .ConfigData.REGIONS 1 }}`:                                                  "west-us",
		`{{ if .Nope }}yes{{ else }}no{{ end }}`:                                             "no",
		`{{ define "x" }}{{ .a | default "x" }}{{ end }}{{ template "x" .ConfigData.NOPE }}`: "x",
	} {
		got, err := renderText(t, template)
		if err != nil {
			t.Errorf("%s: %s", template, err)
		} else if strings.TrimSpace(got) != want {
			t.Errorf("%s: got %q, want %q", template, got, want)
		}
	}
}

func TestPrintingAMissingValueIsAnErrorWithItsName(t *testing.T) {
	for template, missing := range map[string]string{
		`{{ .ConfigData.NOPE }}`:                                                          `.ConfigData.NOPE has no value`,
		`{{ .ConfigData.NOPE.DEEPER }}`:                                                   `.ConfigData.NOPE.DEEPER has no value`,
		`{{ $.ConfigData.NOPE }}`:                                                         `$.ConfigData.NOPE has no value`,
		`{{ .Namespce }}`:                                                                 `.Namespce has no value`,
		`{{ .ConfigData.NOPE | quote }}`:                                                  `.ConfigData.NOPE has no value`,
		`{{ quote .ConfigData.NOPE }}`:                                                    `.ConfigData.NOPE has no value`,
		`{{ squote "a" .ConfigData.NOPE }}`:                                               `.ConfigData.NOPE has no value`,
		`{{ printf "%s" .ConfigData.NOPE }}`:                                              `.ConfigData.NOPE has no value`,
		`{{ print .ConfigData.NOPE }}`:                                                    `.ConfigData.NOPE has no value`,
		`{{ println .ConfigData.NOPE }}`:                                                  `.ConfigData.NOPE has no value`,
		`{{ .ConfigData.NOPE | toYaml | indent 2 }}`:                                      `.ConfigData.NOPE has no value`,
		`{{ toJson .ConfigData.NOPE }}`:                                                   `.ConfigData.NOPE has no value`,
		`{{ stringify .ConfigData.NOPE }}`:                                                `.ConfigData.NOPE has no value`,
		`{{ cat "a" .ConfigData.NOPE }}`:                                                  `.ConfigData.NOPE has no value`,
		`{{ upper .ConfigData.NOPE }}`:                                                    `.ConfigData.NOPE has no value`,
		`{{ int .ConfigData.NOPE }}`:                                                      `.ConfigData.NOPE has no value`,
		`{{ add 1 .ConfigData.NOPE }}`:                                                    `.ConfigData.NOPE has no value`,
		`{{ list 1 .ConfigData.NOPE | join "," }}`:                                        `.ConfigData.NOPE has no value`,
		`{{ dict "a" .ConfigData.NOPE | toYaml }}`:                                        `.ConfigData.NOPE has no value`,
		`{{ toString (default nil .ConfigData.NOPE) }}`:                                   `default nil .ConfigData.NOPE`,
		`{{ coalesce .ConfigData.NOPE .ConfigData.NADA }}`:                                `coalesce .ConfigData.NOPE .ConfigData.NADA has no value`,
		`{{ or .ConfigData.NOPE .ConfigData.NADA }}`:                                      `or .ConfigData.NOPE .ConfigData.NADA has no value`,
		`{{ and .ConfigData.NOPE "x" }}`:                                                  `and .ConfigData.NOPE "x" has no value`,
		`{{ or .ConfigData.NOPE .ConfigData.NADA | quote }}`:                              `or .ConfigData.NOPE .ConfigData.NADA has no value`,
		`{{ ternary .ConfigData.NOPE "x" true }}`:                                         `ternary .ConfigData.NOPE "x" true has no value`,
		`{{ index .ConfigData "NOPE" }}`:                                                  `index .ConfigData "NOPE" has no value`,
		`{{ index .ConfigData.NOPE "x" }}`:                                                `.ConfigData.NOPE has no value`,
		`{{ first (list) }}`:                                                              `first (list) has no value`,
		`{{ $x := .ConfigData.NOPE }}{{ $x }}`:                                            `$x has no value`,
		`{{ $x := .ConfigData.NOPE }}{{ $x | upper }}`:                                    `$x has no value`,
		`{{ (index .ConfigData.REGIONS 0 | dict "a" | get "b").c }}`:                      ``,
		`{{ if true }}{{ .ConfigData.NOPE }}{{ end }}`:                                    `.ConfigData.NOPE has no value`,
		`{{ with .ConfigData }}{{ .NOPE }}{{ end }}`:                                      `.NOPE has no value`,
		`{{ range .ConfigData.REGIONS }}{{ $.ConfigData.NOPE }}{{ end }}`:                 `$.ConfigData.NOPE has no value`,
		`{{ define "x" }}{{ .NOPE }}{{ end }}{{ template "x" . }}`:                        `.NOPE has no value`,
		`{{ block "x" .ConfigData }}{{ .NOPE }}{{ end }}`:                                 `.NOPE has no value`,
		`{{ tpl "{{ .NOPE }}" . }}`:                                                       `.NOPE has no value`,
		`{{ tpl .ConfigData.NOPE . }}`:                                                    `.ConfigData.NOPE has no value`,
		`{{ set . "Namespace" "" | len }}{{ unset . "Namespace" | len }}{{ .Namespace }}`: `.Namespace has no value`,
		`{{ $_ := unset .Manifests "repo" }}{{ .Manifests.repo | quote }}`:                `.Manifests.repo has no value`,
		`{{ fromJson "{\"a\":null}" | quote }}`:                                           `has a null`,
		`{{ fromJson "{\"a\":null}" | toString }}`:                                        `has a null`,
		`{{ fromJson "{\"a\":null}" }}`:                                                   `has a null`,
		`{{ (fromJson "{\"a\":null}").a }}`:                                               `(fromJson "{\"a\":null}").a has no value`,
	} {
		got, err := renderText(t, template)
		if missing == "" {
			if strings.Contains(got, "<no value>") || strings.Contains(got, "<nil>") {
				t.Errorf("%s: got %q", template, got)
			}
			continue
		}
		var failure *render.TemplateError
		if !errors.As(err, &failure) {
			t.Errorf("%s: got %q, %v, want an error", template, got, err)
		} else if !strings.Contains(failure.Message, missing) {
			t.Errorf("%s: %q, want %q in it", template, failure.Message, missing)
		}
	}
}

func TestEveryKeyOfManifestsExists(t *testing.T) {
	got, err := renderText(t, `{{ range $key, $value := .Manifests }}{{ $key }}={{ $value }} {{ end }}`)
	want := "branch=dev chart= commit= digest= parameters=map[] path=./deploy repo=https://git.example.com/hello storage=git tag= type= version= \n"
	if err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestTemplatesReadParametersBesideManifests(t *testing.T) {
	subject := withTemplate("text", `{{ .Manifests.kustomization }} {{ .Manifests.repo }} {{ .Manifests.parameters.repo }}`)
	subject.manifests = fromGit()
	subject.manifests.Parameters = map[string]any{"kustomization": "overlays/dev", "repo": "another"}
	if got := subject.render(t)["platform-config.txt"]; got != "overlays/dev https://git.example.com/hello another\n" {
		t.Errorf("got %q", got)
	}
}

func TestTemplatesSeeTheAssignment(t *testing.T) {
	subject := withTemplate("text", strings.Join([]string{
		`{{ .DeploymentTargetName }} {{ .Namespace }} {{ .Environment }} {{ .Workspace }} {{ .Workload }}`,
		`{{ .Labels.purpose }} {{ .Labels.workload }} {{ .Labels.workspace }} {{ .ClusterType }} {{ .Cluster }} {{ .HostLabels.region }}`,
		`{{ .ConfigVersion }} {{ .Policies | join "," }} {{ .Requires | join "," }} {{ .Wave }} {{ .IsChart }} {{ .SourceURL }} {{ .Image }}`,
		`{{ range .Dependencies }}{{ .name }} {{ .namespace }} {{ .isChart }}{{ end }}`,
		`{{ .Repo.URL }} {{ .Repo.Branch }} {{ .Repo.Path }}`,
		`{{ .ContributorGroups | join "," }} {{ .ReaderGroups | join "," }} {{ .ResourceQuota.pods }} {{ .NetworkPolicy }}`,
	}, "\n"))
	subject.cluster = true
	subject.labels = fleet.Labels{"purpose": "test"}
	subject.workspace = team
	subject.requires = []fleet.Workload{required("redis", helmChart)}
	subject.repo = &folder.Location{URL: "https://git.example.com/gitops", Branch: "dev", Path: "clusters"}
	want := `hello-dev dev-drone-1-hello-dev dev kaizen hello
test hello kaizen drone drone-1 east-us
c0ffee everywhere redis-dev 1 false https://git.example.com/hello 
redis-dev dev-drone-1-redis-dev true
https://git.example.com/gitops dev clusters
kaizen-devs,the "A" team auditors 20 isolated
`
	if got := subject.render(t)["platform-config.txt"]; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestValuesAreNoTemplates(t *testing.T) {
	subject := withTemplate("text", `{{ .ConfigData.text }}|{{ tpl .ConfigData.text . }}`)
	subject.config = map[string]any{"text": "{{ .Namespace }}"}
	if got, want := subject.render(t)["platform-config.txt"], "{{ .Namespace }}|dev-drone-hello-dev\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestTemplatesThatReadAnUnknownRepositoryAreUnknown(t *testing.T) {
	for template, isUnknown := range map[string]bool{
		`{{ .Repo.URL }}`:                        true,
		`{{ .Repo }}`:                            true,
		`{{ with .Repo }}{{ .Branch }}{{ end }}`: true,
		`{{ .Repo | toYaml }}`:                   true,
		`{{ .Repo.Path | default "x" }}`:         true,
		`{{ eq .Repo.URL "x" }}`:                 true,
		`{{ index .Repo "URL" }}`:                true,
		`{{ range .Repo }}x{{ end }}`:            true,
		`{{ range $k, $v := .Repo }}x{{ end }}`:  true,
		`{{ hasKey .Repo "URL" }}`:               true,
		`{{ kindOf .Repo }}`:                     true,
		`{{ dig "Repo" "URL" "x" . }}`:           true,
		`{{ toYaml . }}`:                         true,
		`{{ tpl "{{ .Repo.URL }}" . }}`:          true,
		`{{ define "x" }}{{ .root.Repo.URL }}{{ end }}{{ template "x" (dict "root" .) }}`: true,
		`{{ if .Repo }}known{{ end }}`: false,
		`{{ .Namespace }}`:             false,
		`{{ define "x" }}{{ .root.Namespace }}{{ end }}{{ template "x" (dict "root" .) }}`: false,
		`{{ tpl "{{ .Namespace }}" . }}`:           false,
		`{{ hasKey . "Repo" }} {{ keys . | len }}`: false,
		`{{ $x := .Repo }}x`:                       false,
	} {
		got, err := renderText(t, template)
		if isUnknown && !errors.Is(err, render.ErrUnknown) {
			t.Errorf("%s: got %q, %v, want ErrUnknown", template, got, err)
		}
		if !isUnknown && err != nil {
			t.Errorf("%s: %s", template, err)
		}
	}
}

func TestTemplatesThatReadPendingManifestsAreUnknown(t *testing.T) {
	api := required("api", fromGit())
	api.DeploymentTargets[0].ManifestsPending = true
	for name, test := range map[string]struct {
		template  string
		isUnknown bool
	}{
		"the built-in reconciler":      {"", true},
		"a loop over dependencies":     {"{{ range .Dependencies }}{{ .name }}{{ end }}", true},
		"a condition in the loop":      {"{{ range $d := .Dependencies }}{{ if $d.isChart }}x{{ end }}{{ end }}", true},
		"one dependency":               {"{{ (index .Dependencies 0).name }}", true},
		"all dependencies":             {"{{ toYaml .Dependencies }}", true},
		"the root":                     {"{{ toJson . }}", true},
		"the presence of dependencies": {"{{ if .Dependencies }}some{{ end }}", false},
		"another field":                {"{{ .Namespace }}", false},
	} {
		t.Run(name, func(t *testing.T) {
			deployment := deployment{requires: []fleet.Workload{api}, repo: &folder.Location{}}
			if test.template != "" {
				deployment.reconciler = "own"
				deployment.templates = []fleet.Template{{Type: "reconciler", Name: "own", ContentType: "text", Manifests: []string{test.template}}}
			}
			templates, subject := deployment.compile(t)
			if _, err := templates.Render(subject); errors.Is(err, render.ErrUnknown) != test.isUnknown || !test.isUnknown && err != nil {
				t.Errorf("got error %v, want ErrUnknown: %t", err, test.isUnknown)
			}
			subject.Assignment.Target.Target.ManifestsPending = true
			if _, err := templates.Render(subject); !errors.Is(err, render.ErrUnknown) {
				t.Errorf("with pending manifests of the target: got error %v, want ErrUnknown", err)
			}
		})
	}
}

func TestOtherErrorsPrecedeErrUnknown(t *testing.T) {
	deployment := withTemplate("text", `{{ .Repo.URL }}`)
	deployment.namespaceService = "own"
	deployment.templates = append(deployment.templates,
		fleet.Template{Type: "namespace", Name: "own", ContentType: "text", Manifests: []string{"a\n{{ .Nope }}"}})
	templates, subject := deployment.compile(t)
	_, err := templates.Render(subject)
	if errors.Is(err, render.ErrUnknown) {
		t.Errorf("ErrUnknown hides the other error: %v", err)
	}
	var failure *render.TemplateError
	if !errors.As(err, &failure) || failure.Type != "namespace" || failure.Line != 2 {
		t.Errorf("got error %v, want line 2 of the namespace template", err)
	}
}
