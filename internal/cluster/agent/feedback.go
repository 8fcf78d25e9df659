package agent

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

const (
	clusterPlaceholder = "{cluster}"
	hostPlaceholder    = "{host}"
)

func (v *settingsValidator) checkFeedback() {
	at, f := "feedback", v.settings.Feedback
	if f == nil {
		return
	}
	if reason := v.settings.reconciler().Agent.NoFeedback; reason != "" {
		v.problem(at, "%s", reason)
		return
	}
	f.URL = forge.WebURL(f.Forge, cmp.Or(f.URL, v.settings.Repository.URL))
	parsed, err := url.Parse(f.URL)
	if err != nil || !isWebURL(f.URL) || parsed.RawQuery != "" || parsed.Fragment != "" {
		v.problem(at+".url", "must be the https:// URL of the repository at the Git host")
		return
	}
	if f.Forge == "" {
		f.Forge = forge.KindOf(parsed.Hostname())
	}
	kinds, kind := forge.Names(), f.Forge.Kind()
	switch {
	case f.Forge == "":
		v.problem(
			at+".forge",
			"must be one of %s: it does not follow from the name of the Git host, %q",
			strings.Join(kinds, ", "),
			parsed.Hostname(),
		)
	case kind.Forge == "":
		v.problem(at+".forge", "must be one of %s, not %q%s", strings.Join(kinds, ", "), f.Forge, fleet.DidYouMean(string(f.Forge), kinds))
	case f.APIURL != "" && !isWebURL(f.APIURL):
		v.problem(at+".api_url", "must be an https:// URL")
	default:
		if _, err := f.hook(forge.StatusReport{}); err != nil {
			v.problem(at+".url", "%s", err)
		}
	}
	v.checkContext(at + ".context")
	switch {
	case countTrue(f.Token != "", f.App != nil, f.Secret != "") != 1:
		v.problem(at, "must have one of token, github_app and secret: who may set commit statuses")
	case f.App != nil && !kind.GitHubApps:
		v.problem(at+".github_app", "is for GitHub")
	case f.Token != "" && !strings.Contains(f.Token, ":") && v.settings.reconciler().Agent.FluxFeedback && kind.FluxLogin:
		v.problem(
			at+".token",
			"must be username:token for Flux and %s, where the username of an API token is its user's address of mail",
			kind.Title,
		)
	case f.Secret != "" && fleet.CheckSubdomainName(f.Secret) != "":
		v.problem(at+".secret", "%q %s", f.Secret, fleet.CheckSubdomainName(f.Secret))
	}
	v.checkApp(at+".github_app", f.App)
}

// checkContext checks that flotilla_compliance can read the context, and that statuses of the folders differ.
func (v *settingsValidator) checkContext(at string) {
	context := v.settings.Feedback.Context
	if _, err := observe.ParseContext(context); err != nil {
		v.problem(at, "%s", err)
		return
	}
	if !strings.Contains(context, hostPlaceholder) {
		v.problem(at, "has no {host}: the folder of the cluster type and that of the cluster would overwrite each other's statuses")
	}
	if strings.ContainsAny(context, "*'\"\\`") {
		v.problem(at, "must be plain text with {cluster} and {host} in it")
	}
}

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
