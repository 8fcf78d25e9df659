package agent

import (
	"encoding/json"
	"net/url"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
)

// argoHealth is a health check of Applications for Argo CD. With it the Application that follows a folder is healthy
// only when the Applications in the folder are. Without it a status would report success too early.
const argoHealth = `local health = {status = "Progressing", message = ""}
if obj.status ~= nil and obj.status.health ~= nil then
  health.status = obj.status.health.status
  health.message = obj.status.health.message or ""
end
return health
`

// The commit that a status is about, in the templates of Argo CD's notifications: the one that is synced, or the one
// that the last sync has tried.
const (
	syncedRevision = "{{.app.status.sync.revision}}"
	triedRevision  = "{{.app.status.operationState.operation.sync.revision}}"
)

// argoFeedback adds the settings by which Argo CD's notifications report each commit that the root objects have synced,
// or could not sync, to the Git host.
func (r *renderer) argoFeedback() {
	s, f := r.settings, r.settings.Feedback
	if f == nil {
		return
	}
	name := s.Name
	token := "$" + name + "-token"
	switch {
	case f.Secret != "":
		token = "$" + f.Secret + ":token"
	case f.App != nil:
		r.addFields(Credential, "Secret", "argocd-notifications-secret", "stringData", map[string]any{name + "-private-key": f.App.PrivateKey})
	default:
		r.addFields(Credential, "Secret", "argocd-notifications-secret", "stringData", map[string]any{name + "-token": f.Token})
	}
	data := map[string]any{}
	if f.App != nil {
		service := map[string]any{"appID": f.App.ID, "installationID": f.App.InstallationID, "privateKey": "$" + name + "-private-key"}
		if f.App.URL != "" {
			service["enterpriseBaseURL"] = f.App.URL
		}
		data["service.github"] = yamlText(service)
	} else {
		data["service.webhook."+name] = yamlText(webhookService(f, token))
	}
	states := []struct{ name, state, revision, when, oncePer string }{
		{
			"succeeded", "success", syncedRevision,
			"app.status.operationState != nil and app.status.operationState.phase in ['Succeeded'] and " +
				"app.status.sync.status == 'Synced' and app.status.health.status == 'Healthy'",
			"app.status.sync.revision + (app.status.health.lastTransitionTime ?? '')",
		},
		{
			"degraded", "failure", syncedRevision,
			"app.status.sync.status == 'Synced' and app.status.health.status == 'Degraded'",
			"app.status.sync.revision + (app.status.health.lastTransitionTime ?? '')",
		},
		{
			"failed", "failure", triedRevision,
			// A failed sync is tried again for some minutes, and its phase is Running during that time.
			"app.status.operationState != nil and app.status.operationState.operation.sync != nil and " +
				"(app.status.operationState.phase in ['Error', 'Failed'] or " +
				"app.status.operationState.phase == 'Running' and (app.status.operationState.retryCount ?? 0) > 0)",
			"app.status.operationState.operation.sync.revision",
		},
	}
	var trigger []any
	for _, one := range states {
		template := name + "-" + one.name
		data["template."+template] = yamlText(r.statusTemplate(one.state, one.revision))
		trigger = append(trigger, map[string]any{"when": one.when, "oncePer": one.oncePer, "send": []any{template}})
	}
	data["trigger."+name] = yamlText(trigger)
	settings := r.addFields(Feedback, "ConfigMap", "argocd-notifications-cm", "data", data)
	if f.App != nil {
		settings.FromCredentials = [][]string{{"data", "service.github"}}
	}
	r.addFields(Feedback, "ConfigMap", "argocd-cm", "data", map[string]any{"resource.customizations.health.argoproj.io_Application": argoHealth})
}

// subscription is the annotation by which an Application's commits are reported; nil where there is no feedback.
func (r *renderer) subscription() map[string]any {
	f := r.settings.Feedback
	if f == nil {
		return nil
	}
	service := r.settings.Name
	if f.App != nil {
		service = forgeGitHub
	}
	return map[string]any{"notifications.argoproj.io/subscribe." + r.settings.Name + "." + service: ""}
}

func (r *renderer) subscribe(root *Object) {
	annotations := map[string]string{}
	for key := range r.subscription() {
		annotations[key] = ""
	}
	if len(annotations) > 0 {
		root.SetAnnotations(annotations)
	}
}

// webhookService is the notification service for the Git host's API, with its URL and credentials.
func webhookService(f *Reporting, token string) map[string]any {
	header := func(name, value string) map[string]any { return map[string]any{"name": name, "value": value} }
	headers := []any{header("Content-Type", "application/json")}
	service := map[string]any{"url": strings.TrimRight(statusAPI(f), "/")}
	switch f.Forge {
	case forgeGitHub:
		headers = append(headers, header("Authorization", "Bearer "+token), header("Accept", "application/vnd.github+json"))
	case forgeGitLab:
		headers = append(headers, header("PRIVATE-TOKEN", token))
	case forgeAzure:
		service["basicAuth"] = map[string]any{"username": "flotilla", "password": token}
	default:
		headers = append(headers, header("Authorization", "token "+token))
	}
	service["headers"] = headers
	return service
}

// statusAPI is the root of the Git host's API.
func statusAPI(f *Reporting) string {
	at, err := url.Parse(f.URL)
	if err != nil {
		return ""
	}
	root := at.Scheme + "://" + at.Host
	given := strings.TrimRight(f.APIURL, "/")
	with := func(path string) string {
		switch {
		case given == "":
			return root + path
		case strings.HasSuffix(given, path):
			return given
		}
		return given + path
	}
	switch f.Forge {
	case forgeGitHub:
		switch {
		case given == "" && forge.KindOf(at.Hostname()) == forge.GitHub:
			return "https://api." + at.Host
		case strings.HasPrefix(given, "https://api."):
			return given
		}
		return with("/api/v3")
	case forgeGitLab:
		return with("/api/v4")
	case forgeAzure:
		return orText(given, root)
	}
	return with("/api/v1")
}

// statusTemplate is the notification template of a commit status.
func (r *renderer) statusTemplate(state, revision string) map[string]any {
	s, f := r.settings, r.settings.Feedback
	hosts := s.hosts()
	ofType, own := hosts[0], hosts[1]
	context := `{{if eq .app.metadata.name "` + s.Name + "-" + own.suffix + `"}}` + s.context(own) + "{{else}}" + s.context(ofType) + "{{end}}"
	description := "{{.app.status.sync.status}}, {{.app.status.health.status}}"
	if f.App != nil {
		return map[string]any{"message": description, "github": map[string]any{
			"repoURLPath": f.URL, "revisionPath": revision,
			"status": map[string]any{"state": state, "label": context},
		}}
	}
	address, err := url.Parse(f.URL)
	if err != nil {
		r.problem("feedback.url", "cannot be parsed")
		return nil
	}
	segments := pathSegments(address)
	path, fields := "/repos/"+strings.Join(segments, "/")+"/statuses/"+revision, map[string]any{"context": context, "state": state, "description": description}
	switch f.Forge {
	case forgeGitLab:
		path = "/projects/" + url.PathEscape(strings.Join(segments, "/")) + "/statuses/" + revision
		fields = map[string]any{"name": context, "state": map[string]string{"success": "success", "failure": "failed"}[state], "description": description}
	case forgeAzure:
		path = "/" + azurePath(segments) + "/commits/" + revision + "/statuses?api-version=7.1"
		fields = map[string]any{
			"context": map[string]any{"name": context, "genre": "flotilla"}, "description": description,
			"state": map[string]string{"success": "succeeded", "failure": "failed"}[state],
		}
	}
	return map[string]any{"webhook": map[string]any{s.Name: map[string]any{"method": "POST", "path": path, "body": jsonText(fields)}}}
}

// azurePath is the path in the API of the repository <organization>/<project>/_git/<repository>.
func azurePath(segments []string) string {
	last := len(segments) - 1
	if at := last - 1; at > 0 && segments[at] == "_git" {
		return strings.Join(segments[:at], "/") + "/_apis/git/repositories/" + segments[last]
	}
	return strings.Join(segments[:last], "/") + "/_apis/git/repositories/" + segments[last]
}

// jsonText keeps the quotes of templates as they are.
func jsonText(value any) string {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return ""
	}
	return strings.ReplaceAll(strings.TrimSuffix(text.String(), "\n"), `\"`, `"`)
}

func yamlText(value any) string {
	text, err := yaml.Marshal(value)
	if err != nil {
		return ""
	}
	return string(text)
}
