package agent

import (
	"encoding/base64"

	"github.com/flotilla/terraform-provider-flotilla/internal/render"
)

// rancher adds a GitRepo for each folder, in the namespace in which a cluster's Rancher Fleet manages the cluster
// itself.
func (r *renderer) rancher() {
	s := r.settings
	r.namespace(s.Namespace)
	secret := r.rancherSecret()
	for _, host := range s.hosts() {
		spec := map[string]any{
			"repo":            s.Repository.URL,
			"branch":          s.Repository.Branch,
			"paths":           []any{s.folder(host)},
			"pollingInterval": duration(s.Interval),
			"correctDrift":    map[string]any{"enabled": true},
			"targets":         []any{map[string]any{"name": "local", "clusterName": "local"}},
		}
		if secret != "" {
			spec["clientSecretName"] = secret
		}
		if ca := s.Credentials.CACertificates; ca != "" {
			spec["caBundle"] = base64.StdEncoding.EncodeToString([]byte(ca))
		}
		root := r.add(Root, "fleet.cattle.io/v1alpha1", "GitRepo", s.Namespace, s.Name+"-"+host.suffix, map[string]any{"spec": spec})
		root.Reports = true
		if s.Credentials.CACertificates != "" {
			root.FromCredentials = [][]string{{"spec", "caBundle"}}
		}
		r.mark(root)
		root.SetLabels(merged(root.GetLabels(), map[string]string{render.HostLabel: render.LabelValue(host.name)}))
	}
}

// rancherSecret adds the Secret that Rancher Fleet reads, and returns its name; "" where none is needed.
func (r *renderer) rancherSecret() string {
	s, c := r.settings, &r.settings.Credentials
	if s.CredentialsSecret != "" {
		return s.CredentialsSecret
	}
	// The type of a Secret cannot be changed, so each type has another name.
	kind, name, texts := "kubernetes.io/basic-auth", s.Name+"-repository", map[string]string{}
	switch {
	case c.GitHubApp != nil:
		kind, name = "Opaque", name+"-app"
		texts["github_app_id"], texts["github_app_installation_id"] = c.GitHubApp.ID, c.GitHubApp.InstallationID
		texts["github_app_private_key"] = c.GitHubApp.PrivateKey
	case c.SSHPrivateKey != "":
		kind, name = "kubernetes.io/ssh-auth", name+"-ssh"
		texts["ssh-privatekey"], texts["known_hosts"] = c.SSHPrivateKey, c.SSHKnownHosts
	case c.Token != "":
		texts["username"], texts["password"] = orGit(c.Username), c.Token
	case c.Password != "":
		texts["username"], texts["password"] = c.Username, c.Password
	default:
		return ""
	}
	secret := r.secret(s.Namespace, name, nil, texts)
	secret.Object["type"] = kind
	r.mark(secret)
	return name
}
