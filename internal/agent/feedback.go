package agent

import (
	"cmp"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
)

// The kinds of Git hosts that agents can report to.
const (
	forgeGitHub  = string(forge.GitHub)
	forgeGitLab  = string(forge.GitLab)
	forgeGitea   = string(forge.Gitea)
	forgeForgejo = string(forge.Forgejo)
	forgeAzure   = string(forge.Azure)
)

var forges = []string{forgeGitHub, forgeGitLab, forgeGitea, forgeForgejo, forgeAzure}

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
	f.URL = webURL(cmp.Or(f.URL, r.settings.Repository.URL))
	parsed, err := url.Parse(f.URL)
	if err != nil || !isWebURL(f.URL) || parsed.RawQuery != "" || parsed.Fragment != "" {
		r.problem(at+".url", "must be the https:// URL of the repository at the Git host")
		return
	}
	if f.Forge == "" {
		f.Forge = string(forge.KindOf(parsed.Hostname()))
	}
	switch {
	case f.Forge == "":
		r.problem(at+".forge", "must be one of %s: it does not follow from the name of the Git host, %q", strings.Join(forges, ", "), parsed.Hostname())
	case !slices.Contains(forges, f.Forge):
		r.problem(at+".forge", "must be one of %s, not %q%s", strings.Join(forges, ", "), f.Forge, fleet.DidYouMean(f.Forge, forges))
	}
	if f.APIURL != "" && !isWebURL(f.APIURL) {
		r.problem(at+".api_url", "must be an https:// URL")
	}
	r.checkContext(at + ".context")
	ways := 0
	for _, given := range []bool{f.Token != "", f.App != nil, f.Secret != ""} {
		if given {
			ways++
		}
	}
	switch {
	case ways != 1:
		r.problem(at, "must have one of token, github_app and secret: who may set commit statuses")
	case f.App != nil && f.Forge != forgeGitHub:
		r.problem(at+".github_app", "is for GitHub")
	case f.Secret != "" && fleet.CheckSubdomainName(f.Secret) != "":
		r.problem(at+".secret", "%q %s", f.Secret, fleet.CheckSubdomainName(f.Secret))
	}
	r.checkApp(at+".github_app", f.App)
	if len(pathSegments(parsed)) < 2 {
		r.problem(at+".url", "does not name a repository: %q", parsed.Path)
	}
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

func pathSegments(address *url.URL) []string {
	return strings.FieldsFunc(strings.TrimSuffix(address.Path, ".git"), func(r rune) bool { return r == '/' })
}

// fluxForge is Flux' name of a kind of Git host.
func fluxForge(forge string) string {
	switch forge {
	case forgeForgejo:
		return forgeGitea
	case forgeAzure:
		return "azuredevops"
	}
	return forge
}

// webURL is the address of a repository in a browser.
func webURL(address string) string {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "ssh" {
		return strings.TrimSuffix(address, ".git")
	}
	if segments := pathSegments(parsed); (parsed.Hostname() == "ssh.dev.azure.com" || parsed.Hostname() == "vs-ssh.visualstudio.com") && len(segments) == 4 { // v3, organization, project, repository
		return "https://dev.azure.com/" + segments[1] + "/" + segments[2] + "/_git/" + segments[3]
	}
	return "https://" + parsed.Hostname() + strings.TrimSuffix(parsed.Path, ".git")
}
