package provider_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"sigs.k8s.io/yaml"
)

type pipeline struct{ plan, apply []string }

type pipelineJob struct {
	Script []string
	Steps  []struct{ Name, Run string }
}

func (j pipelineJob) commands() []string {
	commands := j.Script
	for _, step := range j.Steps {
		if step.Run != "" && step.Name != "Check out" {
			commands = append(commands, step.Run)
		}
	}
	return commands
}

func readPipeline(t *testing.T, file string) pipeline {
	t.Helper()
	var parsed struct {
		BeforeScript []string `json:"before_script"`
		Plan, Apply  pipelineJob
		Jobs         struct{ Plan, Apply pipelineJob }
	}
	if err := yaml.Unmarshal([]byte(readFile(t, filepath.Join("..", "..", "examples", "pipelines", file))), &parsed); err != nil {
		t.Fatal(err)
	}
	var prepare []string
	for _, command := range parsed.BeforeScript {
		if !strings.HasPrefix(command, "apk add ") {
			prepare = append(prepare, command)
		}
	}
	commands := pipeline{
		plan:  append(append(prepare, parsed.Plan.commands()...), parsed.Jobs.Plan.commands()...),
		apply: append(append(prepare, parsed.Apply.commands()...), parsed.Jobs.Apply.commands()...),
	}
	if len(commands.plan) < 3 || len(commands.apply) < 2 {
		t.Fatalf("%s has the commands %q", file, commands)
	}
	return commands
}

// A shell runs the commands, as a runner does. A script that keeps the comment replaces the clients of the Git host.
func TestPipelinesPlanCommentAndApply(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("there is no jq")
	}
	tools := acceptanceTools(t)
	mirrored, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	configuration := requiredProviders + readFile(t, filepath.Join("..", "..", "examples", "observing", "overview", "main.tf"))
	for name, tool := range tools {
		for _, file := range []string{"github-actions.yml", "gitea-actions.yml", "gitlab-ci.yml"} {
			t.Run(name+"/"+file, func(t *testing.T) {
				t.Parallel()
				programs := t.TempDir()
				for _, program := range []string{"gh", "curl"} {
					if err := os.WriteFile(filepath.Join(programs, program), []byte("#!/bin/sh\ncp comment.md posted.md\n"), 0o755); err != nil {
						t.Fatal(err)
					}
				}
				n := newNewcomer(t, tool, "TF_CLI_CONFIG_FILE="+filepath.Join(mirrored, "cli.tfrc"), "TF_INPUT=0", "NUMBER=1", "URL=https://git.example.com")
				for i, variable := range n.environment {
					if path, isPath := strings.CutPrefix(variable, "PATH="); isPath {
						n.environment[i] = "PATH=" + programs + string(filepath.ListSeparator) + path
					}
				}
				writeFile(t, filepath.Join(n.folder, "main.tf"), configuration)
				run := func(commands ...string) (printed string) {
					t.Helper()
					for _, command := range commands {
						shell := exec.CommandContext(t.Context(), "sh", "-e", "-c", command)
						shell.Dir, shell.Env = n.folder, n.environment
						output, err := shell.CombinedOutput()
						if err != nil {
							t.Fatalf("%s: %s\n%s", command, err, output)
						}
						printed += string(output)
					}
					return printed
				}
				run("terraform init") // writes the lock file, which users commit
				p := readPipeline(t, file)
				run(p.plan...)
				posted := readFile(t, filepath.Join(n.folder, "posted.md"))
				for _, want := range []string{"## Flotilla", "+ drone/app-main", "Plan: 1 to add"} {
					if !strings.Contains(posted, want) {
						t.Errorf("the comment lacks %q:\n%s", want, posted)
					}
				}
				if _, err := os.Stat(filepath.Join(n.folder, "gitops.git")); !os.IsNotExist(err) {
					t.Errorf("a plan writes to the repository: %v", err)
				}
				if printed := run(p.apply...); !strings.Contains(printed, "Apply complete!") {
					t.Errorf("the first run prints\n%s", printed)
				}
				if commits := git(t, filepath.Join(n.folder, "gitops.git"), "rev-list", "--count", "dev"); commits != "1" {
					t.Errorf("the branch has %s commits", commits)
				}
				if printed := run(p.apply...); strings.Contains(printed, "Apply complete! Resources: 1") {
					t.Errorf("a scheduled run without changes prints\n%s", printed)
				}
				drift := guideBlockOf(t, "ci.md.tmpl", "shell", "-refresh-only")
				run(drift)
				url := filepath.Join(n.folder, "gitops.git")
				commitByHand(t, url, "dev", func(folder string) { removeAll(t, filepath.Join(folder, "drone", "app-main")) })
				run("code=0; " + strings.TrimSpace(drift) + " || code=$?; [ $code = 1 ]")
				if printed := run(p.apply...); !strings.Contains(printed, "Apply complete! Resources: 0 added, 1 changed") {
					t.Errorf("a scheduled run that repairs drift prints\n%s", printed)
				}
			})
		}
	}
}

// These pipelines have no runner in tests.
func TestPipelinesFollowTheirSchemas(t *testing.T) {
	t.Parallel()
	for file, schema := range map[string]string{"gitlab-ci.yml": "gitlab-ci.json", "spacelift/config.yml": "spacelift.yaml"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			valid := pipelineValidator(t, schema)
			text := readFile(t, filepath.Join("..", "..", "examples", "pipelines", file))
			if err := valid(text); err != nil {
				t.Error(err)
			}
			for _, wrong := range [][2]string{{"resource_group:", "resource_grup:"}, {"TF_IN_AUTOMATION: \"1\"", "TF_IN_AUTOMATION: [1]"}} {
				if broken := strings.Replace(text, wrong[0], wrong[1], 1); broken != text && valid(broken) == nil {
					t.Errorf("the schema allows %s", wrong[1])
				}
			}
		})
	}
}

// pipelineValidator returns a validator of YAML by a schema.
func pipelineValidator(t *testing.T, name string) func(text string) error {
	t.Helper()
	decode := func(text string) (any, error) {
		converted, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			return nil, err
		}
		return jsonschema.UnmarshalJSON(bytes.NewReader(converted))
	}
	document, err := decode(readFile(t, filepath.Join("testdata", "pipelines", name)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	schema, err := compiler.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(text string) error {
		value, err := decode(text)
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
}

func TestHCPTerraformScheduleStartsARun(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("there is no curl")
	}
	valid := pipelineValidator(t, "hcp-run.yaml")
	requests := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		body, err := io.ReadAll(request.Body)
		if err == nil {
			err = valid(string(body))
		}
		if err != nil {
			t.Error(err)
		}
		requests <- strings.Join([]string{
			request.Method, request.URL.Path, request.Header.Get("Authorization"), request.Header.Get("Content-Type"),
		}, " ")
		answer.WriteHeader(http.StatusCreated)
	}))
	defer server.Close()
	script := exec.CommandContext(t.Context(), "sh", filepath.Join("..", "..", "examples", "pipelines", "hcp-terraform", "schedule.sh"))
	script.Env = append(os.Environ(), "TFE_TOKEN=secret", "WORKSPACE_ID=ws-fleet", "TFE_ADDRESS="+server.URL)
	if printed, err := script.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, printed)
	}
	if got, want := <-requests, "POST /api/v2/runs Bearer secret application/vnd.api+json"; got != want {
		t.Errorf("got request %s, want %s", got, want)
	}
}
