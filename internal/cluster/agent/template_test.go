package agent_test

import (
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// With any settings, templates use only existing values, and leave neither placeholders nor empty fields in the objects.
func TestTemplatesOfAgentsAreFilled(t *testing.T) {
	t.Parallel()
	app := &agent.GitHubApp{ID: "1", InstallationID: "2", PrivateKey: privateKey}
	for _, name := range reconciler.Agents() {
		entry := reconciler.Named(name)
		for way, credentials := range map[string]agent.Credentials{
			"no credentials": {}, "a token": {Token: "secret"}, "a password": {Username: "me", Password: "secret"},
			"an app": {GitHubApp: app}, "a CA": {CACertificates: certificate},
		} {
			for _, feedback := range []*agent.Reporting{nil, {Forge: "gitea", Token: "secret"}, {Forge: "github", App: app}, {Forge: "gitea", Secret: "theirs"}} {
				settings := smallSettings(name)
				settings.Credentials = credentials
				if entry.OnHub() {
					settings.Environment, settings.Registration = "dev", &agent.Registration{Server: "https://store-17.example.com", Token: "secret"}
				}
				if entry.Agent.NoFeedback == "" {
					settings.Feedback = feedback
				}
				objects := renderObjects(t, settings)
				texts, err := agent.Texts(objects)
				if err != nil {
					t.Fatal(err)
				}
				for i, text := range texts {
					for _, left := range []string{"${", "\nflotilla:", "{}", ": null"} {
						if strings.Contains(text, left) {
							t.Errorf("%s with %s: %s contains %q:\n%s", name, way, objects[i].ID(), left, text)
						}
					}
				}
				roots := 0
				for i := range objects {
					if objects[i].Part == agent.Root {
						roots++
						if !objects[i].Reports {
							t.Errorf("%s: %s does not report its readiness", name, objects[i].ID())
						}
					}
				}
				if roots < 2 {
					t.Errorf("%s: %d objects follow a folder", name, roots)
				}
			}
		}
	}
}
