package agent

import (
	"path"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/render"
)

const (
	clusterLabel     = "flotilla.dev/cluster"
	clusterTypeLabel = "flotilla.dev/cluster-type"
)

// host is a folder that a cluster follows.
type host struct {
	suffix string // of the name of the object that follows it
	name   string // the folder below the repository's path
}

// hosts are the folders of the cluster: that of its type, and its own.
func (s *Settings) hosts() []host {
	return []host{{"cluster-type", s.ClusterType}, {"cluster", "clusters/" + s.Cluster}}
}

func (s *Settings) folder(h host) string { return path.Join(s.Repository.Path, h.name) }

// flux adds a source, and a Kustomization for each folder. Their names do not have the cluster type in them: when a
// cluster gets another type, the same object follows the other folder, and prunes what was in the first.
func (r *renderer) flux() {
	s := r.settings
	r.namespace(s.Namespace)
	spec := map[string]any{
		"interval": duration(s.Interval),
		"url":      s.Repository.URL,
		"ref":      map[string]any{"branch": s.Repository.Branch},
	}
	if s.Credentials.GitHubApp != nil {
		spec["provider"] = "github"
	}
	if name := r.fluxSecret(); name != "" {
		spec["secretRef"] = map[string]any{"name": name}
	}
	source := r.add(Source, "source.toolkit.fluxcd.io/v1", "GitRepository", s.Namespace, s.Name, map[string]any{"spec": spec})
	source.Reports = true
	r.mark(source)
	for _, host := range s.hosts() {
		root := r.add(Root, "kustomize.toolkit.fluxcd.io/v1", "Kustomization", s.Namespace, s.Name+"-"+host.suffix, map[string]any{
			"spec": map[string]any{
				"interval":      "10m0s",
				"retryInterval": duration(s.Interval),
				"timeout":       duration(s.Timeout),
				"path":          "./" + s.folder(host),
				"prune":         true,
				"wait":          true,
				"sourceRef":     map[string]any{"kind": "GitRepository", "name": s.Name},
			},
		})
		root.Reports = true
		r.mark(root)
		root.SetLabels(merged(root.GetLabels(), map[string]string{render.HostLabel: render.LabelValue(host.name)}))
	}
	r.fluxFeedback()
}

// mark labels an object with the cluster that it is for.
func (r *renderer) mark(o *Object) {
	o.SetLabels(merged(o.GetLabels(), map[string]string{
		clusterLabel: render.LabelValue(r.settings.Cluster), clusterTypeLabel: render.LabelValue(r.settings.ClusterType),
	}))
}

// fluxSecret adds the Secret that source-controller reads, and returns its name; "" where none is needed.
func (r *renderer) fluxSecret() string {
	s, c := r.settings, &r.settings.Credentials
	if s.CredentialsSecret != "" {
		return s.CredentialsSecret
	}
	if c.isZero() {
		return ""
	}
	texts := map[string]string{"ca.crt": c.CACertificates}
	switch {
	case c.GitHubApp != nil:
		texts["githubAppID"], texts["githubAppInstallationID"] = c.GitHubApp.ID, c.GitHubApp.InstallationID
		texts["githubAppPrivateKey"], texts["githubAppBaseURL"] = c.GitHubApp.PrivateKey, c.GitHubApp.URL
	case c.SSHPrivateKey != "":
		texts = map[string]string{"identity": c.SSHPrivateKey, "known_hosts": c.SSHKnownHosts, "password": c.SSHPassphrase}
	case c.BearerToken != "":
		texts["bearerToken"] = c.BearerToken
	case c.Token != "":
		texts["username"], texts["password"] = orGit(c.Username), c.Token
	case c.Password != "":
		texts["username"], texts["password"] = c.Username, c.Password
	}
	name := s.Name + "-repository"
	r.mark(r.secret(s.Namespace, name, nil, texts))
	return name
}

// orGit is the user name to send with a token. Git hosts accept any name, so "git" where none is given.
func orGit(username string) string {
	if username == "" {
		return "git"
	}
	return username
}

// duration writes a duration as Kubernetes' own library does, so that an API server returns it unchanged.
func duration(d time.Duration) string { return d.Round(time.Second).String() }
