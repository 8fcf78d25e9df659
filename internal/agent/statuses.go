package agent

import (
	"cmp"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
)

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
		return cmp.Or(given, root)
	}
	return with("/api/v1")
}

// statusRequest is the path and the body of the request that sets a commit status.
func statusRequest(f *Reporting, state, revision, context string) (path, body string) {
	address, err := url.Parse(f.URL)
	if err != nil {
		return "", "" // it has been checked
	}
	segments, description := pathSegments(address), "{{.app.status.sync.status}}, {{.app.status.health.status}}"
	path = "/repos/" + strings.Join(segments, "/") + "/statuses/" + revision
	fields := map[string]any{"context": context, "state": state, "description": description}
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
	return path, jsonText(fields)
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
