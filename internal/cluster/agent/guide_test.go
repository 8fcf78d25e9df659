package agent_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// The guide has a row for each reconciler. It names every kind of object, and whatever it has in backticks is the name or
// the namespace of an object, or a field that is set.
func TestTheGuideListsWhatIsPutOntoACluster(t *testing.T) {
	text, err := os.ReadFile("../../../templates/guides/clusters.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{"AppProject": "project", "Namespace": ""} // a namespace is not what an agent reads
	for _, reconciler := range reconciler.Agents() {
		found := regexp.MustCompile("(?m)^\\| `" + reconciler + "` \\|(.*)\\|(.*)\\|(.*)\\|$").FindStringSubmatch(string(text))
		if found == nil {
			t.Errorf("the guide has no row of %s", reconciler)
			continue
		}
		settings := small(reconciler)
		settings.Credentials.Token = "secret"
		if reconciler == "argocd-hub" {
			settings.Environment, settings.Registration = "dev", &agent.Registration{Server: "https://store-17.example.com", Token: "secret"}
		}
		if reconciler == "argocd" {
			settings.Install = []agent.Text{{Path: "install", Text: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: argocd-repo-server}}"}}
		}
		row, all := strings.Join(found[1:], " "), ""
		for _, object := range rendered(t, settings) {
			if object.Part == agent.Install {
				continue
			}
			word, isOther := words[object.GetKind()]
			if !isOther {
				word = object.GetKind()
			}
			if !strings.Contains(row, word) {
				t.Errorf("%s: the guide does not name the kind of %s", reconciler, object.ID())
			}
			all += fmt.Sprintf(" %s %s %v", object.GetName(), object.GetNamespace(), object.Object["spec"])
		}
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(row, -1) {
			is := regexp.MustCompile(`\b` + regexp.QuoteMeta(name[1]) + `(:true|[ \]])`)
			if name[1] != "CancelHealthCheckOnNewRevision" && !is.MatchString(all) { // which has a test of its own
				t.Errorf("%s: there is no %s in\n%s", reconciler, name[1], all)
			}
		}
	}
}

// The guide has a command that asks each agent to look now, as the action flotilla_reconcile does: of the same objects, by the
// same annotation. Of those that cannot be asked it says why.
func TestTheGuideAsksAgentsAsTheActionDoes(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../templates/guides/clusters.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`(?m)^kubectl --namespace (\S+) annotate --overwrite (\S+)( --all)? ([^=\s]+)=(.+)$`)
	commands := form.FindAllStringSubmatch(string(text), -1)
	used := map[string]bool{}
	for _, name := range reconciler.Agents() {
		by := reconciler.Named(name)
		if by.Refresh == nil {
			if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), "- "+by.NoRefresh+".") {
				t.Errorf("the guide does not say that %s", by.NoRefresh)
			}
			continue
		}
		settings := small(name)
		if by.OnHub() {
			settings.Environment, settings.Registration = "dev", &agent.Registration{Server: "https://store-17.example.com", Token: "secret"}
		}
		asked := 0
		for _, object := range rendered(t, settings) {
			if !by.Refresh.Reads(object.Unstructured, settings.Repository) {
				continue
			}
			asked++
			found := false
			for _, command := range commands {
				namespace, target, all, annotation, value := command[1], command[2], command[3] != "", command[4], command[5]
				of := reconciler.KindNamed(by.Refresh.Kind)
				named := target == strings.ToLower(of.Kind)+"/"+object.GetName() || all && target == of.Resource
				valued := by.Refresh.Value == value || by.Refresh.Value == "" && value == `"$(date +%s)"`
				if namespace == object.GetNamespace() && named && valued && annotation == by.Refresh.Annotation {
					found, used[command[0]] = true, true
				}
			}
			if !found {
				t.Errorf("%s: no command asks %s", name, object.ID())
			}
		}
		if asked == 0 {
			t.Errorf("%s: nothing that is put onto a cluster would be asked", name)
		}
	}
	if len(used) != len(commands) || len(used) == 0 {
		t.Errorf("of %d commands, %d do what the action does", len(commands), len(used))
	}
}
