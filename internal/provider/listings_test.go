//go:build unix

package provider_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/providertest"
)

const listingsFolder = "testdata/listings"

// TestListingsApply applies each HCL listing with Terraform: guides and first pages in `make test`, also the reference in
// `make acceptance`. If a listing is a part of a configuration, a context in testdata/listings completes it:
//
//   - Attributes without a block replace the line "# listing" of the context.
//   - The lines after "# …" in the context replace "# …" in an object.
//   - A block of the listing overrides the attributes of the same block of the context, as in Terraform's override files. So do locals.
//   - shared.tf completes each context, and listings without a context, but not examples.
//   - Each configuration finds the files in the folder files.
//
// The first line of a context states the check of a listing that is not applied.
func TestListingsApply(t *testing.T) {
	t.Parallel()
	requireAcceptance(t)
	contexts, extraFiles := map[string]string{}, listingFiles(t)
	for name, text := range files(t, listingsFolder) {
		if file, isFile := strings.CutPrefix(name, "files/"); isFile {
			extraFiles[file] = text
		} else {
			contexts[name] = text
		}
	}
	shared := contexts["shared.tf"]
	delete(contexts, "shared.tf")
	examples := exampleTexts(t)
	for _, block := range listingsOf(t, "terraform") {
		example := examples[strings.TrimSpace(block.text)]
		context := contexts[block.key+".tf"]
		delete(contexts, block.key+".tf")
		t.Run(block.key, func(t *testing.T) {
			t.Parallel()
			if isReference(block.key) {
				acceptancetest.Only(t)
			}
			check := readListingCheck(context)
			if check.test != "" {
				requireTest(t, check.test)
				return
			}
			if !strings.Contains(block.page, check.wantError) {
				t.Errorf("the page does not show the error %s", check.wantError)
			}
			f := newListingFolder(t, extraFiles)
			f.addExample(example)
			shared := shared
			if example != "" {
				shared = requiredProviders
			}
			context, rest, _ := strings.Cut(context, "\n# …\n")
			texts := []string{shared, context, strings.Replace(block.text, "# …\n", "\n"+rest, 1)}
			if isPartial(t, block.text) {
				const placeholder = "# listing\n"
				if !strings.Contains(context, placeholder) {
					t.Fatalf("%s/%s.tf has no line %q for\n%s", listingsFolder, block.key, placeholder, block.text)
				}
				texts = []string{shared, strings.Replace(context, placeholder, block.text, 1)}
			}
			f.checkListing(check, texts)
		})
	}
	for name := range contexts {
		t.Errorf("%s/%s belongs to no listing", listingsFolder, name)
	}
}

// isReference reports whether a listing is in the reference. TestListingsUseArgumentsOfTheirSchemas also checks it.
func isReference(key string) bool { return referencePattern.MatchString(key) }

var referencePattern = regexp.MustCompile(`^(?:resources|data-sources|functions|guides/reference-[a-z]+)/`)

// listingFiles returns the files that listings read.
func listingFiles(t *testing.T) map[string]string {
	t.Helper()
	extraFiles := map[string]string{"db.yaml": readFile(t, filepath.Join("..", "..", "examples", "secrets", "sops", "db.yaml"))}
	for _, block := range listingsOf(t, "yaml") {
		if block.key == "guides/reference-fleet/reference-the-fleet" {
			extraFiles["clusters.yaml"] = block.text
		}
	}
	extraFiles["fleet.key"], extraFiles["fleet.pub"] = sshKey(t, "")
	_, extraFiles["shop.pub"] = sshKey(t, "")
	_, extraFiles["alice.asc"] = openPGPKey(t)
	_, extraFiles["cosign.pub"] = cosignKey(t)
	extraFiles["app.key"] = newKeyTexts(t).rsa
	return extraFiles
}

// listingCheck is the check of a listing. The zero value applies it.
type listingCheck struct {
	mode      string // "Applied after", "Planned" or ""
	wantError string
	test      string // the test that applies it, or ""
}

var listingCheckPattern = regexp.MustCompile(
	`^# (?:(Planned) only: .+|(Applied after) its context: .+|Fails with: (.+)|Applied by (\w+): .+)\n`)

func readListingCheck(context string) listingCheck {
	match := listingCheckPattern.FindStringSubmatch(context)
	if match == nil {
		return listingCheck{}
	}
	return listingCheck{mode: match[1] + match[2], wantError: match[3], test: match[4]}
}

// listingFolder is a folder where Terraform applies a listing. The test's process serves the provider, a Git host and clusters.
type listingFolder struct {
	t           *testing.T
	path        string
	tool        string
	host        string
	repository  string // the path of the GitOps repository
	cluster     *cloudClusters
	environment []string
}

func newListingFolder(t *testing.T, extraFiles map[string]string) *listingFolder {
	t.Helper()
	installed := tools(t)
	f := &listingFolder{
		t: t, path: t.TempDir(), tool: cmp.Or(installed["terraform"], installed["tofu"]), cluster: newCloudClusters(t),
	}
	for name, text := range extraFiles {
		writeFile(t, filepath.Join(f.path, name), text)
	}
	writeFile(t, filepath.Join(f.path, "edge.kubeconfig"), f.cluster.kubeconfig("edge-1"))
	repositories := t.TempDir()
	f.repository = filepath.Join(repositories, "platform", "gitops.git")
	git(t, repositories, "init", "--quiet", "--bare", "--initial-branch=main", f.repository)
	gittest.Commit(t, f.repository, "main", "main", func(string) {})
	for _, name := range []string{"checkout", "payments"} {
		if err := os.CopyFS(filepath.Join(repositories, name), os.DirFS(f.repository)); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"platform/gitops", "example/gitops.git", "example/My Project/_git/gitops", "scm/plat/gitops.git"} {
		path = filepath.Join(repositories, filepath.FromSlash(path))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.Symlink(f.repository, path)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	statuses, gitServer := &standInStatuses{}, gitBackend(t, repositories)
	withStatuses := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/api/") {
			statuses.ServeHTTP(w, r)
		} else {
			gitServer.ServeHTTP(w, r)
		}
	})
	server := httptest.NewServer(gittest.Backend(repositories, withStatuses))
	t.Cleanup(server.Close)
	f.host = server.URL
	return f
}

var kubeconfigName = regexp.MustCompile(`[\w-]+\.kubeconfig`)

func (f *listingFolder) addExample(name string) {
	f.t.Helper()
	if name == "" {
		return
	}
	for file, text := range files(f.t, filepath.Join("..", "..", "examples", filepath.Dir(filepath.FromSlash(name)))) {
		if strings.HasSuffix(file, ".tf") {
			for _, kubeconfig := range kubeconfigName.FindAllString(text, -1) {
				writeFile(f.t, filepath.Join(f.path, kubeconfig), f.cluster.kubeconfig(strings.TrimSuffix(kubeconfig, ".kubeconfig")))
			}
		} else {
			writeFile(f.t, filepath.Join(f.path, file), text)
		}
	}
}

// checkListing runs Terraform on the last of the texts, completed by the others.
func (f *listingFolder) checkListing(check listingCheck, texts []string) {
	f.t.Helper()
	f.serveProviders(strings.Join(texts, "\n"))
	if check.mode == "Applied after" {
		f.writeConfiguration(texts[:len(texts)-1])
		f.runTerraform("apply -auto-approve", "")
		commit := git(f.t, f.repository, "for-each-ref", "--format=%(objectname)", "refs/heads/dev", "refs/heads/prod")
		texts[len(texts)-1] = commitPattern.ReplaceAllLiteralString(texts[len(texts)-1], commit)
	}
	f.writeConfiguration(texts)
	if strings.Contains(texts[1], "\nmodule ") {
		f.runTerraform("get", "")
	}
	command := "apply -auto-approve"
	if check.mode == "Planned" {
		command = "plan"
	}
	f.runTerraform(command, check.wantError)
}

var commitPattern = regexp.MustCompile(`\b[0-9a-f]{40}\b`)

// writeConfiguration writes parts that override earlier ones into override files. Terraform reads them in the order of their names.
func (f *listingFolder) writeConfiguration(texts []string) {
	f.t.Helper()
	written, seen := map[string]string{}, map[string]bool{}
	for i, text := range texts {
		for _, part := range hclParts(f.t, text) {
			name := fmt.Sprintf("%d.tf", i)
			if seen[part.label] {
				name = fmt.Sprintf("%d_override.tf", i)
			}
			seen[part.label] = true
			written[name] += f.localize(part.text) + "\n"
		}
	}
	for name, text := range written {
		writeFile(f.t, filepath.Join(f.path, name), text)
	}
}

func (f *listingFolder) localize(text string) string {
	repository := filepath.ToSlash(filepath.Join(f.path, "gitops.git"))
	text = strings.ReplaceAll(text, `"gitops.git"`, `"`+repository+`"`)
	for host, kind := range gitHostKinds {
		if strings.Contains(text, `"`+host) && !strings.Contains(text, "forge") {
			text = requestPattern.ReplaceAllString(text, "${1}${2}forge = \""+kind+"\"${2}")
		}
		text = strings.ReplaceAll(text, `"`+host, `"`+f.host+"/example")
	}
	text = strings.ReplaceAll(text, "commit_statuses = {", `commit_statuses = { forge = "gitea",`)
	text = hostPattern.ReplaceAllString(text, "${1}"+f.host+"${2}")
	for _, program := range execPattern.FindAllStringSubmatch(text, -1) {
		path := filepath.Join(f.path, program[2])
		script := fmt.Sprintf("#!/bin/sh\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":%q,\"status\":{\"token\":\"t\"}}'\n", program[1])
		if err := os.WriteFile(path, []byte(script), 0o755); err != nil {
			f.t.Fatal(err)
		}
		text = strings.ReplaceAll(text, `"`+program[2]+`"`, `"`+filepath.ToSlash(path)+`"`)
	}
	return text
}

// gitHostKinds are the Git hosts that Flotilla recognizes by URL. At another URL they need forge.
var gitHostKinds = map[string]string{
	"https://github.com/example": "github", "https://dev.azure.com/example": "azure", "https://bitbucket.org/example": "bitbucket",
}

// requestPattern finds the mode of a delivery and the separator after it.
var requestPattern = regexp.MustCompile(`(mode *= "pull_request")(,|\n)`)

var hostPattern = regexp.MustCompile(`(\b(?:url|repo) *= ")https://git\.example\.com(/(?:platform|checkout|payments|scm)\b)`)

// execPattern finds the API version and the program in the exec of a cluster.
var execPattern = regexp.MustCompile(`api_version *= "(client\.authentication\.k8s\.io/\w+)"\s+command *= "([\w-]+)"`)

func (f *listingFolder) serveProviders(text string) {
	f.t.Helper()
	servers := map[string]json.RawMessage{}
	serve := func(source string, start providertest.Start) {
		_, value, _ := strings.Cut(providertest.Serve(f.t, f.tool, source, start), "=")
		if err := json.Unmarshal([]byte(value), &servers); err != nil {
			f.t.Fatal(err)
		}
	}
	serve("flotilla/flotilla", startProvider)
	for _, name := range []string{"azurerm", "aws", "google", "azapi"} {
		isUsed := strings.Contains(text, `"`+name+"_") || strings.Contains(text, " "+name+"_")
		if isUsed || name == "aws" && strings.Contains(text, "\nmodule ") {
			serve("hashicorp/"+name, func() (tfprotov6.ProviderServer, error) {
				return providerserver.NewProtocol6(&cloud{name: name, clusters: f.cluster})(), nil
			})
		}
	}
	value, err := json.Marshal(servers)
	if err != nil {
		f.t.Fatal(err)
	}
	f.environment = append(os.Environ(), "TF_IN_AUTOMATION=1", "CHECKPOINT_DISABLE=1", "TF_REATTACH_PROVIDERS="+string(value),
		"TF_VAR_app_private_key="+readFile(f.t, filepath.Join(f.path, "app.key")),
		"TF_VAR_signing_key="+readFile(f.t, filepath.Join(f.path, "fleet.key")),
		"TF_VAR_edge_key="+readFile(f.t, filepath.Join(f.path, "fleet.key")),
		"TF_VAR_repository="+f.host+"/platform/gitops", "TF_VAR_token=a-token", "TF_VAR_git_token=a-token",
		"TF_VAR_commit="+strings.Repeat("a1", 20))
}

// runTerraform returns the output of Terraform, which must fail with wantError unless that is "".
func (f *listingFolder) runTerraform(command, fails string) string {
	f.t.Helper()
	terraform := exec.CommandContext(f.t.Context(), f.tool, append(strings.Fields(command), "-no-color")...)
	terraform.Dir, terraform.Env = f.path, f.environment
	output, err := terraform.CombinedOutput()
	printed := strings.NewReplacer("│", "", "registry.opentofu.org", "registry.terraform.io").Replace(string(output))
	// Terraform names the members of a cycle in any order.
	words := strings.FieldsFunc(fails, func(r rune) bool { return r == ' ' || r == ',' })
	isSilent := func(word string) bool { return !strings.Contains(printed, word) }
	if (err != nil) != (fails != "") || slices.ContainsFunc(words, isSilent) {
		f.t.Fatalf("%s: %v, want the error %q\n%s\n%s", command, err, fails, output, f.configuration())
	}
	return string(output)
}

func (f *listingFolder) configuration() string {
	f.t.Helper()
	names, err := filepath.Glob(filepath.Join(f.path, "*.tf"))
	if err != nil {
		f.t.Fatal(err)
	}
	var all strings.Builder
	for _, name := range names {
		fmt.Fprintf(&all, "-- %s --\n%s", filepath.Base(name), readFile(f.t, name))
	}
	return all.String()
}

// isPartial reports whether HCL has attributes outside of blocks.
func isPartial(t *testing.T, text string) bool {
	t.Helper()
	return len(hclBody(t, text).Attributes) > 0
}

func hclBody(t *testing.T, text string) *hclsyntax.Body {
	t.Helper()
	file, problems := hclsyntax.ParseConfig([]byte(text), "listing.tf", hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatalf("%v:\n%s", problems, text)
	}
	return file.Body.(*hclsyntax.Body)
}

type hclPart struct{ label, text string }

// hclParts divides HCL into parts that an override file can replace.
func hclParts(t *testing.T, text string) []hclPart {
	t.Helper()
	var parts []hclPart
	for _, block := range hclBody(t, text).Blocks {
		if block.Type != "locals" {
			label := strings.Join(append([]string{block.Type}, block.Labels...), " ")
			parts = append(parts, hclPart{label, string(block.Range().SliceBytes([]byte(text)))})
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(block.Body.Attributes)) {
			value := string(block.Body.Attributes[name].SrcRange.SliceBytes([]byte(text)))
			parts = append(parts, hclPart{"local " + name, "locals {\n  " + value + "\n}"})
		}
	}
	return parts
}

func TestTheGuideShowsChangesOfFinalObjects(t *testing.T) {
	t.Parallel()
	requireAcceptance(t)
	charts := newChartServer(t)
	charts.publish(t, "1.2.1", tillFiles)
	example := guideExample(t, "rendering.md.tmpl", "examples/rendering/preview/main.tf")
	f := newListingFolder(t, listingFiles(t))
	text := strings.ReplaceAll(example, "https://charts.example.com", charts.url)
	f.serveProviders(text)
	f.writeConfiguration([]string{text})
	f.runTerraform("apply -auto-approve", "")
	newFiles := map[string]string{}
	for name, content := range tillFiles {
		newFiles[name] = strings.ReplaceAll(content, "tag: v1", "tag: v2")
	}
	charts.publish(t, "1.2.2", newFiles)
	printed := f.runTerraform("plan", "")
	for line := range strings.Lines(textListing(t, "", "guides/rendering/final-objects")) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "+ ") && !strings.Contains(printed, line) {
			t.Errorf("the plan has no line %s:\n%s", line, printed)
		}
	}
}
