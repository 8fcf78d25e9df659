package agent

import (
	"cmp"
	"net/url"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// The placeholders of a context: the cluster, and which of its folders it is about.
const (
	clusterPlaceholder = "{cluster}"
	hostPlaceholder    = "{host}"
)

// checkFeedback checks whether the agent can report to the Git host.
func (r *renderer) checkFeedback() {
	at, f := "feedback", r.settings.Feedback
	if f == nil {
		return
	}
	if reason := r.settings.of().Agent.NoFeedback; reason != "" {
		r.problem(at, "%s", reason)
		return
	}
	f.URL = forge.WebURL(f.Forge, cmp.Or(f.URL, r.settings.Repository.URL))
	parsed, err := url.Parse(f.URL)
	if err != nil || !isWebURL(f.URL) || parsed.RawQuery != "" || parsed.Fragment != "" {
		r.problem(at+".url", "must be the https:// URL of the repository at the Git host")
		return
	}
	if f.Forge == "" {
		f.Forge = forge.KindOf(parsed.Hostname())
	}
	kinds, kind := forge.Names(), f.Forge.Kind()
	switch {
	case f.Forge == "":
		r.problem(
			at+".forge",
			"must be one of %s: it does not follow from the name of the Git host, %q",
			strings.Join(kinds, ", "),
			parsed.Hostname(),
		)
	case kind.Forge == "":
		r.problem(at+".forge", "must be one of %s, not %q%s", strings.Join(kinds, ", "), f.Forge, fleet.DidYouMean(string(f.Forge), kinds))
	case f.APIURL != "" && !isWebURL(f.APIURL):
		r.problem(at+".api_url", "must be an https:// URL")
	default:
		if _, err := f.hook(forge.Report{}); err != nil {
			r.problem(at+".url", "%s", err)
		}
	}
	r.checkContext(at + ".context")
	switch {
	case count(f.Token != "", f.App != nil, f.Secret != "") != 1:
		r.problem(at, "must have one of token, github_app and secret: who may set commit statuses")
	case f.App != nil && !kind.GitHubApps:
		r.problem(at+".github_app", "is for GitHub")
	case f.Token != "" && !strings.Contains(f.Token, ":") && r.settings.of().Agent.FluxFeedback && kind.FluxLogin:
		r.problem(
			at+".token",
			"must be username:token for Flux and %s, where the username of an API token is its user's address of mail",
			kind.Title,
		)
	case f.Secret != "" && fleet.CheckSubdomainName(f.Secret) != "":
		r.problem(at+".secret", "%q %s", f.Secret, fleet.CheckSubdomainName(f.Secret))
	}
	r.checkApp(at+".github_app", f.App)
}

// checkContext makes sure that flotilla_compliance can find the cluster in a context, and that a status of one folder of
// a cluster does not replace that of another.
func (r *renderer) checkContext(at string) {
	context := r.settings.Feedback.Context
	if _, err := observe.ParseContext(context); err != nil {
		r.problem(at, "%s", err)
		return
	}
	if !strings.Contains(context, hostPlaceholder) {
		r.problem(at, "has no {host}: the folder of the cluster type and that of the cluster would overwrite each other's statuses")
	}
	if strings.ContainsAny(context, "*'\"\\`") {
		r.problem(at, "must be plain text with {cluster} and {host} in it")
	}
}
