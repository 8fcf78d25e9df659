package agent

import (
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
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
	f.URL = webURL(orText(f.URL, r.settings.Repository.URL))
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

func orText(text, instead string) string {
	if text == "" {
		return instead
	}
	return text
}

func pathSegments(address *url.URL) []string {
	return strings.FieldsFunc(strings.TrimSuffix(address.Path, ".git"), func(r rune) bool { return r == '/' })
}

// context is the context of the statuses about one of the folders.
func (s *Settings) context(h host) string {
	return strings.NewReplacer(clusterPlaceholder, s.Cluster, hostPlaceholder, h.suffix).Replace(s.Feedback.Context)
}

// fluxFeedback adds the objects by which the notification controller reports each commit that the root objects have
// applied, or could not apply, to the Git host.
func (r *renderer) fluxFeedback() {
	s, f := r.settings, r.settings.Feedback
	if f == nil {
		return
	}
	const api = "notification.toolkit.fluxcd.io/v1beta3"
	name, secret := s.Name+"-status", f.Secret
	if secret == "" {
		secret = name
		texts := map[string]string{"token": f.Token}
		if f.App != nil {
			texts = map[string]string{
				"githubAppID": f.App.ID, "githubAppInstallationID": f.App.InstallationID,
				"githubAppPrivateKey": f.App.PrivateKey, "githubAppBaseURL": f.App.URL,
			}
		}
		r.mark(r.secret(s.Namespace, secret, nil, texts))
	}
	hosts := s.hosts()
	ofType, own := hosts[0], hosts[1]
	r.mark(r.add(Feedback, api, "Provider", s.Namespace, name, map[string]any{"spec": map[string]any{
		"type":      fluxForge(f.Forge),
		"address":   f.URL,
		"secretRef": map[string]any{"name": secret},
		"commitStatusExpr": "event.involvedObject.name == '" + s.Name + "-" + own.suffix + "' ? '" + s.context(own) + "' : '" +
			s.context(ofType) + "'",
	}}))
	sources := make([]any, len(hosts))
	for i, host := range hosts {
		sources[i] = map[string]any{"kind": "Kustomization", "name": s.Name + "-" + host.suffix}
	}
	r.mark(r.add(Feedback, api, "Alert", s.Namespace, name, map[string]any{"spec": map[string]any{
		"providerRef": map[string]any{"name": name}, "eventSeverity": "info", "eventSources": sources,
		// As long as nothing is assigned to a cluster, it may have no folder of its own.
		"exclusionList": []any{reconciler.NoFolderFlux},
	}}))
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
