package agent

import (
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// hook is the request that sets a status at the Git host.
func (f *Reporting) hook(report forge.StatusReport) (forge.Hook, error) {
	report.Page = f.URL
	return forge.StatusHook(forge.HostedRepository{URL: f.URL, APIURL: f.APIURL, Forge: f.Forge}, report)
}

// webhookService is the notification service for the Git host's API.
func webhookService(f *Reporting, token string) map[string]any {
	hook, _ := f.hook(forge.StatusReport{Token: token}) // already checked
	var headers []any
	for _, header := range hook.Headers {
		headers = append(headers, map[string]any{"name": header[0], "value": header[1]})
	}
	service := map[string]any{"url": hook.API, "headers": headers}
	if hook.Username != "" {
		service["basicAuth"] = map[string]any{"username": hook.Username, "password": token}
	}
	return service
}

func statusRequest(f *Reporting, notice *reconciler.Notice, context, key string) (path, body string) {
	state := forge.Failure
	if notice.Success {
		state = forge.Success
	}
	hook, _ := f.hook(forge.StatusReport{Commit: notice.Commit, Context: context, Key: key, State: state, Description: notice.Description})
	return hook.Path, strings.ReplaceAll(string(observe.EncodeDocument(hook.Fields)), `\"`, `"`) // quotes of templates must stay
}
