package provider_test

import (
	"encoding/base64"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsAppearNowhere applies with a right and with a wrong token while everything is logged, and
// looks for them in what was printed, logged, planned and kept.
func TestSecretsAppearNowhere(t *testing.T) {
	repo := giteaRepository(t)
	parsed, err := url.Parse(repo.cloneURL)
	if err != nil {
		t.Fatal(err)
	}
	right, _ := parsed.User.Password()
	const wrong = "canary-5d0c/+ token"
	for name, token := range map[string]string{"wrong": wrong, "right": right} {
		t.Run(name, func(t *testing.T) {
			tool := tools(t)["terraform"]
			if tool == "" {
				tool = tools(t)["tofu"]
			}
			w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + small{}.config(repository{url: repo.url})})
			t.Setenv("FLOTILLA_GIT_TOKEN", token)
			t.Setenv("TF_LOG", "TRACE")
			t.Setenv("TF_LOG_PATH", filepath.Join(w.path, "log.txt"))
			stdout, stderr, err := w.try("apply", "-input=false", "-auto-approve")
			if (err == nil) != (name == "right") {
				t.Fatalf("apply with the %s token: %v\n%s%s", name, err, stdout, stderr)
			}
			writeFile(t, filepath.Join(w.path, "printed.txt"), stdout+stderr)
			if name == "right" {
				w.run("plan", "-input=false", "-out=plan.out")
				writeFile(t, filepath.Join(w.path, "plan.txt"), w.run("show", "-json", "plan.out"))
			}
			for _, file := range []string{"printed.txt", "log.txt", "terraform.tfstate", "plan.txt"} {
				content, err := os.ReadFile(filepath.Join(w.path, file))
				if err != nil {
					continue // no state and no plan where the apply failed
				}
				for form, secret := range map[string]string{
					"plain": token, "URL-escaped": url.QueryEscape(token), "path-escaped": url.PathEscape(token),
					"base64 of the pair": base64.StdEncoding.EncodeToString([]byte("x-access-token:" + token)),
				} {
					if strings.Contains(string(content), secret) {
						t.Errorf("%s shows the token, %s", file, form)
					}
				}
			}
		})
	}
}
