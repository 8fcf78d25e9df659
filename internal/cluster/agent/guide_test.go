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

// The guide has a row for each reconciler. The row names every kind of object. Every text in backticks is the name or
// namespace of an object, or a field with a value.
func TestTheGuideListsTheObjectsOfAgents(t *testing.T) {
	text, err := os.ReadFile("../../../templates/guides/clusters.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	words := map[string]string{"AppProject": "project", "Namespace": ""} // an agent does not read namespaces
	for _, reconciler := range reconciler.Agents() {
		found := regexp.MustCompile("(?m)^\\| `" + reconciler + "` \\|(.*)\\|(.*)\\|(.*)\\|$").FindStringSubmatch(string(text))
		if found == nil {
			t.Errorf("the guide has no row of %s", reconciler)
			continue
		}
		settings := smallSettings(reconciler)
		settings.Credentials.Token = "secret"
		if reconciler == "argocd-hub" {
			settings.Environment, settings.Registration = "dev", &agent.Registration{Server: "https://store-17.example.com", Token: "secret"}
		}
		if reconciler == "argocd" {
			settings.Install = []agent.Text{{Path: "install", Text: "{apiVersion: apps/v1, kind: Deployment, metadata: {name: argocd-repo-server}}"}}
		}
		row, all := strings.Join(found[1:], " "), ""
		for _, object := range renderObjects(t, settings) {
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
			pattern := regexp.MustCompile(`\b` + regexp.QuoteMeta(name[1]) + `(:true|[ \]])`)
			if name[1] != "CancelHealthCheckOnNewRevision" && !pattern.MatchString(all) { // another test covers this name
				t.Errorf("%s: no %s in\n%s", reconciler, name[1], all)
			}
		}
	}
}

// The guide has a command to refresh each agent. Like the action flotilla_reconcile, the command sets the same annotation on the same
// objects. If an agent cannot be refreshed, the guide gives the reason.
func TestTheGuideRefreshesAgentsLikeTheAction(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../templates/guides/clusters.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`(?m)^kubectl --namespace (\S+) annotate --overwrite (\S+)( --all)? ([^=\s]+)=(.+)$`)
	commands := form.FindAllStringSubmatch(string(text), -1)
	used := map[string]bool{}
	for _, name := range reconciler.Agents() {
		entry := reconciler.Named(name)
		if entry.Refresh == nil {
			if !strings.Contains(strings.Join(strings.Fields(string(text)), " "), "- "+entry.NoRefresh+".") {
				t.Errorf("the guide does not say that %s", entry.NoRefresh)
			}
			continue
		}
		settings := smallSettings(name)
		if entry.OnHub() {
			settings.Environment, settings.Registration = "dev", &agent.Registration{Server: "https://store-17.example.com", Token: "secret"}
		}
		count := 0
		for _, object := range renderObjects(t, settings) {
			if !entry.Refresh.Reads(object.Unstructured, settings.Repository) {
				continue
			}
			count++
			found := false
			for _, command := range commands {
				namespace, target, all, annotation, value := command[1], command[2], command[3] != "", command[4], command[5]
				kind := reconciler.KindNamed(entry.Refresh.Kind)
				hasTarget := target == strings.ToLower(kind.Kind)+"/"+object.GetName() || all && target == kind.Resource
				hasValue := entry.Refresh.Value == value || entry.Refresh.Value == "" && value == `"$(date +%s)"`
				if namespace == object.GetNamespace() && hasTarget && hasValue && annotation == entry.Refresh.Annotation {
					found, used[command[0]] = true, true
				}
			}
			if !found {
				t.Errorf("%s: no command refreshes %s", name, object.ID())
			}
		}
		if count == 0 {
			t.Errorf("%s: the action would refresh no object", name)
		}
	}
	if len(used) != len(commands) || len(used) == 0 {
		t.Errorf("of %d commands, %d match the action", len(commands), len(used))
	}
}
