package provider_test

import (
	"archive/zip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// encodedForms returns the encodings of a secret by name: plain, and for URLs, JSON, HTML and headers.
func encodedForms(secret string) map[string]string {
	quoted, _ := json.Marshal(secret)
	found := map[string]string{
		"plain": secret, "URL-escaped": url.QueryEscape(secret), "path-escaped": url.PathEscape(secret),
		"in JSON": string(quoted[1 : len(quoted)-1]), "in HTML": html.EscapeString(secret),
	}
	for _, username := range []string{"x-access-token", "oauth2", "me", ""} {
		found["base64 of "+username] = strings.TrimRight(base64.StdEncoding.EncodeToString([]byte(username+":"+secret)), "=")
	}
	return found
}

// leakedForms returns the texts that must not appear: the encodings of a secret, and its first ten bytes.
func leakedForms(secret string) map[string]string {
	found := encodedForms(secret)
	if !strings.HasPrefix(secret, "-----") {
		found["cut"] = secret[:min(len(secret), 10)]
	}
	return found
}

// checkNoSecrets searches all files of a run for secrets: output, logs, states and plans.
func checkNoSecrets(t *testing.T, folder string, secrets map[string]string) {
	t.Helper()
	texts := map[string]string{}
	for _, pattern := range []string{"*.txt", "*.tfstate*"} {
		found, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range found {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			texts[filepath.Base(file)] = string(content)
		}
	}
	plans, err := filepath.Glob(filepath.Join(folder, "*.out"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range plans {
		maps.Copy(texts, unzipPlan(t, file))
	}
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		for which, secret := range secrets {
			for form, text := range leakedForms(secret) {
				if start := strings.Index(texts[name], text); start >= 0 {
					t.Errorf("%s shows %s, %s: …%s…", name, which, form, texts[name][max(0, start-200):min(len(texts[name]), start+40)])
				}
			}
		}
	}
}

// unzipPlan returns the files in a saved plan, which include the state.
func unzipPlan(t *testing.T, file string) map[string]string {
	t.Helper()
	archive, err := zip.OpenReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	texts := map[string]string{}
	for _, entry := range archive.File {
		reader, err := entry.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(reader)
		reader.Close()
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)+":"+entry.Name] = string(content)
	}
	if len(texts) < 3 {
		t.Fatalf("%s holds %d files, want a plan, a state and a configuration", file, len(texts))
	}
	return texts
}

// runTraced runs the tool with TF_LOG=TRACE and saves output and log in the folder.
func (w workdir) runTraced(t *testing.T, name string, arguments ...string) (printed string, err error) {
	t.Helper()
	t.Setenv("TF_LOG", "TRACE")
	t.Setenv("TF_LOG_PATH", filepath.Join(w.path, name+".log.txt"))
	stdout, stderr, err := w.try(arguments...)
	writeFile(t, filepath.Join(w.path, name+".printed.txt"), stdout+stderr)
	return stdout + stderr, err
}

// TestATokenIsInNoPlanAndNoState sets the token by an environment variable and by an ephemeral variable.
func TestATokenIsInNoPlanAndNoState(t *testing.T) {
	repo := giteaRepository(t)
	parsed, err := url.Parse(repo.cloneURL)
	if err != nil {
		t.Fatal(err)
	}
	token, _ := parsed.User.Password()
	const ephemeral = "variable \"token\" {\n  type      = string\n  ephemeral = true\n}\nprovider \"flotilla\" {\n  git = { token = var.token }\n}\n"
	for name, tool := range acceptanceTools(t) {
		for way, test := range map[string]struct{ variable, provider string }{
			"the environment": {"FLOTILLA_GIT_TOKEN", ""}, "an ephemeral variable": {"TF_VAR_token", ephemeral},
		} {
			t.Run(name+"/"+way, func(t *testing.T) {
				at := repository{url: repo.url, provider: test.provider}
				config := strings.Replace(small{path: name + "-" + test.variable}.config(at), `branch = "dev"`, `branch = "main"`, 1)
				w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + config})
				t.Setenv(test.variable, token)
				for _, arguments := range [][]string{
					{"plan", "-input=false", "-out=plan.out"}, {"apply", "-input=false", "plan.out"},
					{"plan", "-input=false", "-out=after.out", "-detailed-exitcode"}, {"show", "-json", "after.out"},
				} {
					if printed, err := w.runTraced(t, arguments[0], arguments...); err != nil {
						t.Fatalf("%s: %v\n%s", arguments[0], err, printed)
					}
				}
				checkNoSecrets(t, w.path, map[string]string{"the token": token})
			})
		}
	}
}

// TestAWrongTokenIsNotShown has a real server refuse the token.
func TestAWrongTokenIsNotShown(t *testing.T) {
	repo := giteaRepository(t)
	const wrong = "canary-5d0c/+ token"
	for _, tool := range acceptanceTools(t) {
		w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + small{}.config(repository{url: repo.url})})
		t.Setenv("FLOTILLA_GIT_TOKEN", wrong)
		if printed, err := w.runTraced(t, "apply", "apply", "-input=false", "-auto-approve"); err == nil ||
			!words("Repository refuses the credentials").MatchString(printed) {
			t.Errorf("apply: %v\n%s", err, printed)
		}
		checkNoSecrets(t, w.path, map[string]string{"the token": wrong})
	}
}

// canaries are assignments whose providers have secrets in some fields. Most of them provoke an error.
type canaries struct {
	secrets   map[string]string
	providers map[string]string // attribute git in HCL, by alias
	cells     map[string]cell   // by name of the assignment
}

type cell struct {
	provider, url, extra string
	want                 string // summary of the error; "" for none
}

// config returns the configuration of the cells selected by keep.
func (c canaries) config(keep func(name string) bool) string {
	var b strings.Builder
	b.WriteString(requiredProviders + "variable \"secret\" {\n  type      = map(string)\n  ephemeral = true\n}\n")
	if keep("url-credentials") {
		b.WriteString("variable \"url\" {\n  type      = string\n  sensitive = true\n}\n")
	}
	used := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(c.cells)) {
		if cell := c.cells[name]; keep(name) {
			used[cell.provider] = true
			path := name // else two assignments would add the same folders
			if name == "taken" {
				path = ""
			}
			fmt.Fprintf(&b, "resource \"flotilla_assignment\" %q {\n  provider    = flotilla.%s\n  name        = %q\n  fleet       = local.fleet\n"+
				"  gitops_repo = { url = %s, branch = \"main\", path = %q }\n  %s\n}\n", name, cell.provider, name, cell.url, path, cell.extra)
		}
	}
	for alias := range used {
		fmt.Fprintf(&b, "provider \"flotilla\" {\n  alias = %q\n  git   = %s\n}\n", alias, c.providers[alias])
	}
	fleet := small{}.config(repository{})
	fleet = fleet[strings.Index(fleet, "locals {"):strings.Index(fleet, "resource \"flotilla_assignment\"")]
	return b.String() + fleet
}

// errorSummaries returns the summary of the error at each assignment or at its provider.
func (c canaries) errorSummaries(printed string) map[string]string {
	summaries := map[string]string{}
	for _, message := range strings.Split(printed, "Error: ")[1:] {
		message, _, _ = strings.Cut(message, "Warning: ")
		for name, cell := range c.cells {
			if strings.Contains(message, "with flotilla_assignment."+name+",") ||
				strings.Contains(message, "flotilla/flotilla\"]."+cell.provider+",") {
				summaries[name] = summaryOf(message)
			}
		}
	}
	return summaries
}

// summaryOf returns the summary of an error. If the error refers to the full error at another object, it returns the summary of that.
func summaryOf(message string) string {
	summary, detail, _ := strings.Cut(message, "\n")
	if summary != "Same error as elsewhere" {
		return summary
	}
	_, after, _ := strings.Cut(strings.Join(strings.Fields(strings.ReplaceAll(detail, "│", " ")), " "), `: 1 error "`)
	summary, _, _ = strings.Cut(after, `"`)
	return summary
}

// TestCanariesAppearNowhere puts a secret into every field for secrets and provokes every reachable error. The server repeats the
// secrets in all encodings.
func TestCanariesAppearNowhere(t *testing.T) {
	tools := acceptanceTools(t)
	c, server := newCanaries(t)
	for name, tool := range tools {
		t.Run(name, func(t *testing.T) {
			w := newWorkdir(t, tool, map[string]string{"main.tf": c.config(func(string) bool { return true })})
			variable, err := json.Marshal(c.secrets)
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("TF_VAR_secret", string(variable))
			t.Setenv("TF_VAR_url", "https://me:"+url.PathEscape(c.secrets["url"])+"@git.example.com/o/r.git")

			// Errors in the configuration end a plan early: failed cells are left out until the plan succeeds.
			failed := map[string]string{}
			for try := 1; ; try++ {
				writeFile(t, filepath.Join(w.path, "main.tf"), c.config(func(name string) bool { return failed[name] == "" }))
				printed, err := w.runTraced(t, fmt.Sprintf("plan-%d", try), "plan", "-input=false", "-no-color", "-out=plan.out")
				if err == nil {
					break
				}
				now := c.errorSummaries(printed)
				if maps.Copy(failed, now); len(now) == 0 {
					t.Fatalf("the plan without the failed cells fails: %v", err)
				}
			}
			printed, err := w.runTraced(t, "apply", "apply", "-input=false", "-no-color", "plan.out")
			if err == nil {
				t.Error("the apply has no error")
			}
			maps.Copy(failed, c.errorSummaries(printed))
			for name, cell := range c.cells {
				if failed[name] != cell.want {
					t.Errorf("cell %s: got error %q, want %q", name, failed[name], cell.want)
				}
			}

			// The server refuses every request of the refresh.
			writeFile(t, filepath.Join(w.path, "main.tf"), c.config(func(name string) bool { return strings.HasPrefix(name, "fine") }))
			server.refusesAll.Store(true)
			defer server.refusesAll.Store(false)
			if printed, err := w.runTraced(t, "refresh", "plan", "-input=false", "-no-color"); err == nil {
				t.Errorf("the refresh has no error:\n%s", printed)
			}
			checkNoSecrets(t, w.path, c.secrets)
		})
	}
}
