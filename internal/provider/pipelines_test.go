package provider_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// pipeline has the commands of the jobs of an example of a pipeline.
type pipeline struct{ plan, apply []string }

type pipelineJob struct {
	Script []string
	Steps  []struct{ Run string }
}

func (j pipelineJob) commands() []string {
	commands := j.Script
	for _, step := range j.Steps {
		if step.Run != "" {
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
	read := pipeline{
		plan:  append(append(prepare, parsed.Plan.commands()...), parsed.Jobs.Plan.commands()...),
		apply: append(append(prepare, parsed.Apply.commands()...), parsed.Jobs.Apply.commands()...),
	}
	if len(read.plan) < 3 || len(read.apply) < 2 {
		t.Fatalf("%s has the commands %q", file, read)
	}
	return read
}

// TestPipelinesPlanCommentAndApply runs the commands of each pipeline with a shell, as its runner does. The programs that reach
// the Git host are replaced by one that keeps the comment.
func TestPipelinesPlanCommentAndApply(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("jq"); err != nil {
		t.Skip("there is no jq")
	}
	mirrored, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	configuration := requiredProviders + readFile(t, filepath.Join("..", "..", "examples", "observing", "overview", "main.tf"))
	for name, tool := range acceptanceTools(t) {
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
				run("terraform init") // writes the lock file, which is committed
				p := readPipeline(t, file)
				run(p.plan...)
				posted := readFile(t, filepath.Join(n.folder, "posted.md"))
				for _, want := range []string{"## Flotilla", "+ drone/app-main", "Plan: 1 to add"} {
					if !strings.Contains(posted, want) {
						t.Errorf("the comment lacks %q:\n%s", want, posted)
					}
				}
				if _, err := os.Stat(filepath.Join(n.folder, "gitops.git")); !os.IsNotExist(err) {
					t.Errorf("a plan has written: %v", err)
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
				byHandOn(t, url, "dev", func(folder string) { git(t, folder, "rm", "-q", "-r", "drone/app-main") })
				run("code=0; " + strings.TrimSpace(drift) + " || code=$?; [ $code = 2 ]")
				if printed := run(p.apply...); !strings.Contains(printed, "Apply complete! Resources: 0 added, 1 changed") {
					t.Errorf("a scheduled run that repairs drift prints\n%s", printed)
				}
			})
		}
	}
}
