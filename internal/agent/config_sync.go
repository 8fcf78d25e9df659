package agent

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
)

// configSync adds a RootSync for each folder, in the namespace of Config Sync.
func (r *renderer) configSync() {
	s := r.settings
	r.namespace(s.Namespace)
	auth, secret := r.syncSecret()
	git := map[string]any{
		"repo": s.Repository.URL, "branch": s.Repository.Branch, "period": duration(s.Interval), "auth": auth,
	}
	if secret != "" {
		git["secretRef"] = map[string]any{"name": secret}
	}
	if ca := s.Credentials.CACertificates; ca != "" && !r.isSSH() {
		r.mark(r.secret(s.Namespace, s.Name+"-certificates", nil, map[string]string{"cert": ca}))
		git["caCertSecretRef"] = map[string]any{"name": s.Name + "-certificates"}
	}
	for _, host := range s.hosts() {
		of := map[string]any{"dir": s.folder(host)}
		for field, value := range git {
			of[field] = value
		}
		root := r.add(Root, "configsync.gke.io/v1beta1", "RootSync", s.Namespace, s.Name+"-"+host.suffix, map[string]any{"spec": map[string]any{
			"sourceFormat": "unstructured", "sourceType": "git", "git": of,
			"override": map[string]any{"namespaceStrategy": "explicit", "reconcileTimeout": duration(s.Timeout)},
		}})
		root.Reports = true
		r.mark(root)
		root.SetLabels(merged(root.GetLabels(), map[string]string{render.HostLabel: render.LabelValue(host.name)}))
	}
}

// syncSecret adds the Secret that Config Sync reads, and returns how it authenticates and the name; "" where none is needed.
func (r *renderer) syncSecret() (auth, name string) {
	s, c := r.settings, &r.settings.Credentials
	texts := map[string]string{}
	switch {
	case s.CredentialsSecret != "" && r.isSSH():
		return "ssh", s.CredentialsSecret
	case s.CredentialsSecret != "":
		return "token", s.CredentialsSecret
	case c.GitHubApp != nil:
		auth = "githubapp"
		texts["github-app-application-id"], texts["github-app-installation-id"] = c.GitHubApp.ID, c.GitHubApp.InstallationID
		texts["github-app-private-key"], texts["github-app-base-url"] = c.GitHubApp.PrivateKey, c.GitHubApp.URL
	case c.SSHPrivateKey != "":
		auth, texts["ssh"], texts["known_hosts"] = "ssh", c.SSHPrivateKey, c.SSHKnownHosts
	case c.Token != "":
		auth, texts["username"], texts["token"] = "token", orGit(c.Username), c.Token
	case c.Password != "":
		auth, texts["username"], texts["token"] = "token", c.Username, c.Password
	default:
		return "none", ""
	}
	r.mark(r.secret(s.Namespace, s.Name+"-repository", nil, texts))
	return auth, s.Name + "-repository"
}
