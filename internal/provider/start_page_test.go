package provider_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
)

// TestNewcomersGetTheOutputOfTheStartPage runs the commands of the start page in an empty folder and compares the output.
func TestNewcomersGetTheOutputOfTheStartPage(t *testing.T) {
	t.Parallel()
	blocks := codeBlocks(sectionOf(t, filepath.Join("docs", "index.md"), "Five minutes"))
	if len(blocks) < 4 || blocks[0].language != "terraform" {
		t.Fatalf("the section has %d blocks, and begins with no configuration", len(blocks))
	}
	tools := acceptanceTools(t)
	mirrored, err := mirror()
	if err != nil {
		t.Fatal(err)
	}
	for name, tool := range tools {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNewcomer(t, tool, "TF_CLI_CONFIG_FILE="+filepath.Join(mirrored, "cli.tfrc"))
			writeFile(t, filepath.Join(n.folder, "main.tf"), blocks[0].text)
			n.play(t, blocks[1:])
		})
	}
}

// TestNewcomersBuildTheProviderFromSource follows README and start page. The provider works after a first and a second build.
func TestNewcomersBuildTheProviderFromSource(t *testing.T) {
	t.Parallel()
	section := sectionOf(t, filepath.Join("docs", "index.md"), "From source")
	if sectionOf(t, "README.md", "From source") != section {
		t.Error("README and start page differ in the section \"From source\"")
	}
	blocks := codeBlocks(section)
	if len(blocks) != 3 {
		t.Fatalf("the section has %d blocks", len(blocks))
	}
	if _, err := exec.LookPath("make"); err != nil {
		t.Skip("needs make, which is not on PATH")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	caches, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	gocache, gomodcache, _ := strings.Cut(strings.TrimSpace(string(caches)), "\n")
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			if _, err := mirror(); err != nil { // builds the same program
				t.Fatal(err)
			}
			n := newNewcomer(t, tool, "TF_CLI_CONFIG_FILE="+os.DevNull, "GOCACHE="+gocache, "GOMODCACHE="+gomodcache)
			// This working copy replaces the clone.
			if err := os.Symlink(root, filepath.Join(n.folder, "terraform-provider-flotilla")); err != nil {
				t.Fatal(err)
			}
			n.play(t, []codeBlock{{"shell", strings.Replace(blocks[0].text, "git clone ", "true ", 1)}})
			writeFile(t, filepath.Join(n.folder, "main.tf"), codeBlocks(sectionOf(t, filepath.Join("docs", "index.md"), "Five minutes"))[0].text)
			n.play(
				t,
				[]codeBlock{
					{
						"console",
						"$ terraform init\n- Installing flotilla/flotilla v0.0.1...\n$ terraform plan\nPlan: 1 to add, 0 to change, 0 to destroy.\n",
					},
				},
			)
			installed, err := filepath.Glob(
				filepath.Join(n.home, ".terraform.d", "plugins", "*", "flotilla", "flotilla", "0.0.1", "*", "terraform-provider-flotilla"),
			)
			if err != nil || len(installed) != 2 {
				t.Fatalf("got installed programs %q, want 2: %v", installed, err)
			}
			for _, program := range installed { // as another build has another file
				writeFile(t, program, readFile(t, program)+"\n")
			}
			n.play(t, blocks[1:2])
			n.play(t, []codeBlock{{"console", "$ terraform plan\nPlan: 1 to add, 0 to change, 0 to destroy.\n"}})
			n.play(t, blocks[2:])
			if remaining, err := filepath.Glob(filepath.Join(n.home, ".terraform.d", "plugins", "*", "flotilla", "*")); err != nil || len(remaining) > 0 {
				t.Errorf("the folder still has %q: %v", remaining, err)
			}
		})
	}
}

// sectionOf returns the text below a heading of a page. The path starts at the root of the repository.
func sectionOf(t *testing.T, page, heading string) string {
	t.Helper()
	_, section, found := strings.Cut(readFile(t, filepath.Join("..", "..", page)), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("%s has no section %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// newcomer runs commands of a page in an empty folder with an empty home. Either tool is called terraform.
type newcomer struct {
	folder, home string
	environment  []string
}

func newNewcomer(t *testing.T, tool string, environment ...string) newcomer {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the commands need a shell")
	}
	n := newcomer{folder: t.TempDir(), home: t.TempDir()}
	programs := t.TempDir()
	if err := os.Symlink(tool, filepath.Join(programs, "terraform")); err != nil {
		t.Fatal(err)
	}
	n.environment = append(
		append(
			os.Environ(),
			"PATH="+programs+string(filepath.ListSeparator)+os.Getenv("PATH"),
			"TF_CLI_ARGS=-no-color",
			"CHECKPOINT_DISABLE=1",
			"HOME="+n.home,
			"GIT_AUTHOR_NAME=Kim",
			"GIT_AUTHOR_EMAIL=kim@example.com",
			"GIT_COMMITTER_NAME=Kim",
			"GIT_COMMITTER_EMAIL=kim@example.com",
		),
		environment...)
	return n
}

// play runs the commands of blocks and compares their output with the page.
func (n newcomer) play(t *testing.T, blocks []codeBlock) {
	t.Helper()
	for _, block := range blocks {
		for _, command := range block.commands() {
			shell := exec.CommandContext(t.Context(), "sh", "-c", command.line)
			shell.Dir, shell.Env = n.folder, n.environment
			printed, err := shell.CombinedOutput()
			if err != nil {
				t.Fatalf("%s: %s\n%s", command.line, err, printed)
			}
			if missing := command.missing(normalized(string(printed))); missing != "" {
				t.Errorf("%s does not print %q at its place in the page, but\n%s", command.line, missing, printed)
			}
		}
	}
}

// variableText matches text that differs between runs: commits and times.
var variableText = regexp.MustCompile(`\b[0-9a-f]{7,40}\b|\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d)?)?`)

// spaces differ between tools: only Terraform aligns the values of a map.
var spaces = regexp.MustCompile(` +`)

func normalized(printed string) string {
	return spaces.ReplaceAllString(variableText.ReplaceAllString(printed, "~"), " ")
}

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

// command is a line after "$ ", with the printed lines below it.
type command struct {
	line    string
	printed []string
}

func (b codeBlock) commands() (commands []command) {
	if b.language == "shell" { // commands without output
		for line := range strings.Lines(b.text) {
			commands = append(commands, command{line: strings.TrimRight(line, "\n")})
		}
		return commands
	}
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

// missing returns the first line of the page that the output does not have in order. "..." matches any lines.
func (c command) missing(printed string) string {
	for _, line := range c.printed {
		if line = normalized(line); line == "..." {
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
