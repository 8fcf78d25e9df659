package render

import (
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/hydrate"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/fleettest"
)

// TestExternalSecretsEqualTheTemplate compares renderExternalSecrets with the template.
func TestExternalSecretsEqualTheTemplate(t *testing.T) {
	t.Parallel()
	f, config := fleettest.ReferenceWithSecrets(400, 24)
	for i := range f.ConfigContainers {
		if i%3 == 0 { // some have another store or unusual texts
			container := &f.ConfigContainers[i]
			secrets, _, err := config.Secrets(container)
			if err != nil {
				t.Fatal(err)
			}
			if i%8 < 5 { // some files have plain texts alone
				continue
			}
			for _, reference := range secrets.References {
				*reference = fleet.SecretReference{Store: []string{"vault", "other"}[i%2], Key: "a: \"b\" # c", Property: "data:\n"}
			}
			if err := config.SetSecrets(container, secrets); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range f.ClusterTypes {
		f.ClusterTypes[i].SecretStores["other"] = fleet.SecretStore{Kind: "SecretStore"}
	}
	scheduled, _ := schedule.Schedule(f)
	hydrated, err := hydrate.Hydrate(f, config, scheduled.Assignments)
	if err != nil {
		t.Fatal(err)
	}
	templates, findings := Compile(f)
	if len(findings) > 0 {
		t.Fatal(findings)
	}
	other := templates.runners.Get().(*runner)
	compared, valid := 0, 0
	for range 2 {
		for i, assignment := range scheduled.Assignments {
			snapshot := hydrated.All[i]
			subject := Subject{
				Assignment: assignment, Environment: f.Environment, Owner: "platform",
				ConfigVersion: snapshot.Version, Config: snapshot.Values(), Secrets: snapshot.Secrets(),
			}
			host := templates.hosts[assignment.Host.ClusterType.Name]
			for _, template := range host.templates {
				if template.kind != "secret" || len(subject.Secrets) == 0 {
					continue
				}
				got, ok, err := templates.renderExternalSecrets(host, template, subject)
				if err != nil {
					t.Fatal(err)
				}
				if !ok {
					continue
				}
				compared++
				other.isFilled = false
				want, err := other.renderTemplate(templates, template, subject)
				if err != nil || string(got.Content) != string(want) {
					t.Fatalf("%v\n got: %s\nwant: %s", err, got.Content, want)
				}
				if found := templates.Check(subject, []AssignmentFile{{Name: got.Name, Content: got.Content}}); got.isValid && len(found) > 0 {
					t.Fatalf("a valid file has findings %v:\n%s", found, got.Content)
				} else if got.isValid {
					valid++
				}
			}
		}
	}
	if compared < 100 || valid < 10 {
		t.Errorf("only %d files were compared, %d of them valid", compared, valid)
	}
}
