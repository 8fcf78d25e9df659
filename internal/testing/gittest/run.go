// Package gittest has Git servers without processes: [Local] and [Backend] on disk, [Host] in memory, [StandIn] for other Git
// hosts. Helpers run git.
package gittest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Hurry makes git skip flushing and packing, in this process and its children, by a configuration in the folder.
func Hurry(folder string) {
	file := filepath.Join(folder, "gitconfig")
	if err := os.WriteFile(file, []byte(hurried), 0o600); err != nil {
		panic(err)
	}
	os.Setenv("GIT_CONFIG_GLOBAL", file)
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
}

const hurried = `
[user]
	name = A Person
	email = person@example.com
[core]
	fsync = none
[gc]
	auto = 0
[maintenance]
	auto = false
[receive]
	autogc = false
`

// Run runs a program without user configuration, and returns its output.
func Run(t testing.TB, directory, name string, args ...string) string {
	t.Helper()
	output, err := TryRun(t, directory, name, args...)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
	return output
}

// TryRun is Run for a program that may fail.
func TryRun(t testing.TB, directory, name string, args ...string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), name, args...)
	command.Dir = directory
	command.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false", // a process more for each commit
		"GIT_AUTHOR_NAME=A Person", "GIT_AUTHOR_EMAIL=person@example.com",
		"GIT_COMMITTER_NAME=A Person", "GIT_COMMITTER_EMAIL=person@example.com")
	output, err := command.CombinedOutput()
	return string(output), err
}

// Feed runs git with an input, and returns its output.
func Feed(t testing.TB, directory string, input []byte, args ...string) string {
	t.Helper()
	command := exec.CommandContext(t.Context(), "git", args...)
	command.Dir, command.Stdin = directory, bytes.NewReader(input)
	output, err := command.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v: %s", args[0], err, output)
	}
	return string(output)
}
