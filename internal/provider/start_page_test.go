package provider_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// The start page of the documentation is what a newcomer does first: what it shows is saved and run in an empty folder, and
// prints what it says.
func TestNewcomersGetWhatTheStartPageShows(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the commands are those of a shell")
	}
	_, section, _ := strings.Cut(readFile(t, filepath.Join("..", "..", "docs", "index.md")), "\n## Five minutes\n")
	section, _, found := strings.Cut(section, "\n## ")
	if !found {
		t.Fatal("the start page has no section of five minutes")
	}
	blocks := codeBlocks(section)
	if len(blocks) < 4 || blocks[0].language != "terraform" {
		t.Fatalf("the section has %d blocks, and begins with no configuration", len(blocks))
	}
	mirrored, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	for name, tool := range oneTool(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			programs, folder := t.TempDir(), t.TempDir()
			if err := os.Symlink(tool, filepath.Join(programs, "terraform")); err != nil {
				t.Fatal(err)
			}
			writeFile(t, filepath.Join(folder, "main.tf"), blocks[0].text)
			environment := append(os.Environ(), "PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"), "TF_CLI_ARGS=-no-color", "CHECKPOINT_DISABLE=1",
				"TF_CLI_CONFIG_FILE="+filepath.Join(mirrored, "cli.tfrc"), "HOME="+t.TempDir(),
				"GIT_AUTHOR_NAME=somebody", "GIT_AUTHOR_EMAIL=somebody@example.com", "GIT_COMMITTER_NAME=somebody", "GIT_COMMITTER_EMAIL=somebody@example.com")
			for _, block := range blocks[1:] {
				for _, command := range block.commands() {
					shell := exec.CommandContext(t.Context(), "sh", "-c", command.line)
					shell.Dir, shell.Env = folder, environment
					printed, err := shell.CombinedOutput()
					if err != nil {
						t.Fatalf("%s: %s\n%s", command.line, err, printed)
					}
					if missing := command.missing(string(printed)); missing != "" {
						t.Errorf("%s does not print %q where the start page says so, but\n%s", command.line, missing, printed)
					}
				}
			}
		})
	}
}

// codeBlock is a fenced block of Markdown.
type codeBlock struct{ language, text string }

func codeBlocks(markdown string) (blocks []codeBlock) {
	const fence = "\n```"
	for {
		_, rest, found := strings.Cut(markdown, fence)
		if !found {
			return blocks
		}
		language, rest, _ := strings.Cut(rest, "\n")
		text, after, _ := strings.Cut(rest, fence)
		blocks = append(blocks, codeBlock{language, text + "\n"})
		markdown = after
	}
}

// command is a line that begins with "$ ", and what it prints: the lines after it.
type command struct {
	line    string
	printed []string
}

func (b codeBlock) commands() (commands []command) {
	if b.language != "console" {
		return nil
	}
	for line := range strings.Lines(b.text) {
		line = strings.TrimRight(line, "\n")
		if text, ok := strings.CutPrefix(line, "$ "); ok {
			commands = append(commands, command{line: text})
		} else if last := len(commands) - 1; last >= 0 {
			commands[last].printed = append(commands[last].printed, line)
		}
	}
	return commands
}

// missing is the first line that a command does not print after those before it; "..." stands for any lines.
func (c command) missing(printed string) string {
	for _, line := range c.printed {
		if line == "..." {
			continue
		}
		_, rest, found := strings.Cut(printed, line)
		if !found {
			return line
		}
		printed = rest
	}
	return ""
}
