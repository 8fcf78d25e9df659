//go:build unix

package provider_test

import (
	"cmp"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// commandPage is a page whose commands may use the HCL and files that it shows or links to.
type commandPage struct {
	t        *testing.T
	name     string
	hcl      string
	files    map[string]bool // files of examples and of earlier commands
	makefile string
	help     func(subcommand string) string
	schemas  *tfprotov6.GetProviderSchemaResponse
}

var (
	referenceLink = regexp.MustCompile(`\(\.\./((?:resources|data-sources)/\w+\.md)`)
	exampleLink   = regexp.MustCompile(`/(?:tree|blob)/main/(examples/[\w./-]+)\)`)
	makeCommand   = regexp.MustCompile(`(?:^|[|&;] *)make((?: -C \S+)?(?: [a-z][a-z0-9-]*)+)`)
	toolCommand   = regexp.MustCompile(`\bterraform ((?:providers )?[a-z-]+)([^|>&]*)`)
	testCommand   = regexp.MustCompile(`go test (?:-v )?(\./\S+) .*-run '?([\w|]+)'?`)
	variableUse   = regexp.MustCompile(`\bTF_VAR_(\w+)`)
	addressUse    = regexp.MustCompile(`\b(data\.)?(flotilla_[a-z_]+)\.(\w+)\b`)
	outputUse     = regexp.MustCompile(`terraform output -json (\w+)`)
	valueUse      = regexp.MustCompile(`"data\.(flotilla_\w+)\.\w+"\)\.values\.(\w+)`)
	fileWritten   = regexp.MustCompile(`(?:>>? ?|-out=|--kubeconfig )([\w.-]+\.\w+)`)
	fileRead      = regexp.MustCompile(`(?:show -json |--config\.file=|--kubeconfig |>> ?)([\w.-]+\.\w+)`)
)

// Commands name existing make targets, subcommands and flags of Terraform, and Go tests, and names and files of their page.
func TestCommandsOfPagesAreValid(t *testing.T) {
	t.Parallel()
	requireAcceptance(t)
	installed, helps := allTools(t), map[string]string{}
	help := func(subcommand string) string {
		if _, ok := helps[subcommand]; !ok {
			output, _ := exec.CommandContext(t.Context(), cmp.Or(installed["terraform"], installed["tofu"]),
				append(strings.Fields(subcommand), "-help")...).Output()
			helps[subcommand] = string(output)
		}
		return helps[subcommand]
	}
	commands := map[string][]string{}
	for _, language := range []string{"shell", "console"} {
		for _, block := range listingsOf(t, language) {
			commands[block.page] = append(commands[block.page], commandLines(block)...)
		}
	}
	pages, examples, schemas := readDocumentation(t), exampleTexts(t), providerSchemas(t)
	if len(commands) < 15 {
		t.Errorf("only %d pages have commands", len(commands))
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		if name == "docs/guides/night.md" { // TestTheQuestionsAtNightAreAnswered runs its commands with examples
			continue
		}
		page := newCommandPage(t, name, pages, examples)
		page.help, page.schemas = help, schemas
		for _, command := range commands[pages[name]] {
			page.checkCommand(command)
		}
	}
}

// commandLines returns the commands of a block. In a console, they begin with "$ ", and other lines are output.
func commandLines(block pageListing) []string {
	var lines []string
	hasPrompt := strings.HasPrefix(block.text, "$ ")
	for line := range strings.Lines(block.text) {
		text, isCommand := strings.CutPrefix(strings.TrimSpace(line), "$ ")
		if text, _, _ = strings.Cut(text, " # "); (isCommand || !hasPrompt) && !strings.HasPrefix(text, "#") {
			lines = append(lines, strings.TrimSpace(text))
		}
	}
	return lines
}

func newCommandPage(t *testing.T, name string, pages, examples map[string]string) commandPage {
	t.Helper()
	p := commandPage{
		t: t, name: name, files: map[string]bool{}, makefile: readFile(t, filepath.Join("..", "..", "GNUmakefile")),
	}
	texts := pages[name]
	for _, link := range referenceLink.FindAllStringSubmatch(pages[name], -1) {
		texts += pages["docs/"+link[1]]
	}
	for _, fence := range fencePattern.FindAllStringSubmatch(texts, -1) {
		if fence[2] == "terraform" {
			p.hcl += fence[3]
		}
		if example := examples[strings.TrimSpace(fence[3])]; example != "" {
			p.files[path.Base(example)] = true
		}
	}
	for _, link := range exampleLink.FindAllStringSubmatch(pages[name], -1) {
		folder := link[1]
		if path.Ext(folder) != "" {
			folder = path.Dir(folder)
		}
		for file, content := range files(t, filepath.Join("..", "..", filepath.FromSlash(folder))) {
			p.files[path.Base(file)] = true
			p.hcl += "\n" + content
		}
	}
	return p
}

func (p commandPage) checkCommand(command string) {
	p.t.Helper()
	require := func(ok bool, missing string) {
		p.t.Helper()
		if !ok {
			p.t.Errorf("%s: there is no %s for the command %s", p.name, missing, command)
		}
	}
	for _, match := range makeCommand.FindAllStringSubmatch(command, -1) {
		words := strings.Fields(match[1])
		if words[0] == "-C" {
			words = words[2:]
		}
		for _, target := range words {
			require(strings.Contains(p.makefile, "\n"+target+":"), "target "+target)
		}
	}
	for _, match := range toolCommand.FindAllStringSubmatch(command, -1) {
		help := p.help(match[1])
		require(help != "", "subcommand "+match[1])
		for _, flag := range regexp.MustCompile(`\s(-[a-z][a-z-]*)`).FindAllStringSubmatch(match[2], -1) {
			isKnown := strings.Contains(help, flag[1]) || strings.Contains(p.help("plan"), flag[1]) // apply refers to plan
			require(isKnown, "flag "+flag[1])
		}
	}
	if match := testCommand.FindStringSubmatch(command); match != nil {
		tests, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(match[1]), "*_test.go"))
		require(err == nil && len(tests) > 0, "package "+match[1])
		for _, test := range strings.Split(match[2], "|") {
			declaration := regexp.MustCompile(`\nfunc Test\w*` + test)
			require(slices.ContainsFunc(tests, func(file string) bool { return declaration.MatchString(readFile(p.t, file)) }), "test "+test)
		}
	}
	p.checkNames(command, require)
}

func (p commandPage) checkNames(command string, require func(ok bool, missing string)) {
	p.t.Helper()
	for _, match := range variableUse.FindAllStringSubmatch(command, -1) {
		require(strings.Contains(p.hcl, `variable "`+match[1]+`"`), "variable "+match[1])
	}
	for _, match := range outputUse.FindAllStringSubmatch(command, -1) {
		require(strings.Contains(p.hcl, `output "`+match[1]+`"`), "output "+match[1])
	}
	for _, match := range addressUse.FindAllStringSubmatch(command, -1) {
		kind := "resource"
		if match[1] != "" {
			kind = "data"
		}
		require(strings.Contains(p.hcl, kind+` "`+match[2]+`" "`+match[3]+`"`), kind+" "+match[2]+"."+match[3])
	}
	for _, match := range valueUse.FindAllStringSubmatch(command, -1) {
		schema := p.schemas.DataSourceSchemas[match[1]]
		hasName := func(attribute *tfprotov6.SchemaAttribute) bool { return attribute.Name == match[2] }
		require(schema != nil && slices.ContainsFunc(schema.Block.Attributes, hasName), "attribute "+match[2])
	}
	for _, match := range fileRead.FindAllStringSubmatch(command, -1) {
		isNew := strings.Contains(command, "create ")
		require(p.files[match[1]] || isNew, "file "+match[1])
	}
	for _, match := range fileWritten.FindAllStringSubmatch(command, -1) {
		p.files[match[1]] = true
	}
}
