package agent

import (
	"cmp"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/render"
)

const (
	argoAPI       = "argoproj.io/v1alpha1"
	argoFinalizer = "resources-finalizer.argocd.argoproj.io"
	argoSecret    = "argocd.argoproj.io/secret-type"
	inCluster     = "https://kubernetes.default.svc"
)

// argocd adds a Secret for the repository, a project that may read it, and an Application for each folder.
func (r *renderer) argocd() {
	s := r.settings
	r.namespace(s.Namespace)
	r.argoRepository()
	r.argoProject(map[string]any{"namespace": "*", "server": inCluster})
	for _, host := range s.hosts() {
		root := r.application(s.Name+"-"+host.suffix, host, map[string]any{"recurse": true},
			map[string]any{"server": inCluster, "namespace": s.Namespace})
		r.subscribe(root)
	}
	r.argoDefaultProject()
	r.argoFeedback()
}

// application adds an Application that follows a folder. It also syncs an empty folder, so that the last deployment
// target is pruned, too.
func (r *renderer) application(name string, host host, directory, destination map[string]any) *Object {
	root := r.add(Root, argoAPI, "Application", r.settings.Namespace, name, map[string]any{"spec": r.applicationSpec(host, directory, destination)})
	root.SetFinalizers([]string{argoFinalizer})
	root.Reports = true
	r.mark(root)
	root.SetLabels(merged(root.GetLabels(), map[string]string{render.HostLabel: render.LabelValue(host.name)}))
	return root
}

func (r *renderer) applicationSpec(host host, directory, destination map[string]any) map[string]any {
	s := r.settings
	return map[string]any{
		"project":     s.Name,
		"destination": destination,
		"source": map[string]any{
			"repoURL": s.Repository.URL, "targetRevision": s.Repository.Branch, "path": s.folder(host), "directory": directory,
		},
		"syncPolicy": map[string]any{"automated": map[string]any{"prune": true, "selfHeal": true, "allowEmpty": true}},
	}
}

// argoProject adds a project that may read the repository and apply everything in the folders.
func (r *renderer) argoProject(destination map[string]any) *Object {
	return r.add(Source, argoAPI, "AppProject", r.settings.Namespace, r.settings.Name, map[string]any{"spec": map[string]any{
		"description":              "Follows the folders that Flotilla writes",
		"sourceRepos":              []any{r.settings.Repository.URL},
		"destinations":             []any{destination},
		"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
	}})
}

// argoDefaultProject asks for the project "default", which the Applications of workspaces without a project use. Argo
// CD's web server creates it, so it is missing where Argo CD is installed without the web server.
func (r *renderer) argoDefaultProject() {
	if len(r.settings.Install) == 0 || r.settings.Name == "default" {
		return
	}
	r.defaultProject = true
}

// addDefaultProject adds it once the agent's own manifests have been read.
func (r *renderer) addDefaultProject() {
	if !r.defaultProject || r.has("Deployment", "argocd-server") || r.has("AppProject", "default") {
		return
	}
	r.add(Source, argoAPI, "AppProject", r.settings.Namespace, "default", map[string]any{"spec": map[string]any{
		"sourceRepos":              []any{"*"},
		"destinations":             []any{map[string]any{"namespace": "*", "server": "*"}},
		"clusterResourceWhitelist": []any{map[string]any{"group": "*", "kind": "*"}},
	}})
}

// has says whether the agent's own manifests have an object.
func (r *renderer) has(kind, name string) bool {
	return r.find(kind, name) != nil
}

func (r *renderer) find(kind, name string) *Object {
	for _, o := range r.objects {
		if o.Part == Install && o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}

// argoRepository adds the Secret with which Argo CD reads the repository.
func (r *renderer) argoRepository() {
	s, c := r.settings, &r.settings.Credentials
	if host := repositoryHost(s.Repository.URL); c.CACertificates != "" {
		certificates := r.addFields(Source, "ConfigMap", "argocd-tls-certs-cm", "data", map[string]any{host: c.CACertificates})
		certificates.Shared, certificates.FromCredentials = r.settings.of().OnHub(), [][]string{{"data", host}}
	}
	texts := map[string]string{"type": "git", "url": s.Repository.URL}
	switch {
	case c.GitHubApp != nil:
		texts["githubAppID"], texts["githubAppInstallationID"] = c.GitHubApp.ID, c.GitHubApp.InstallationID
		texts["githubAppPrivateKey"], texts["githubAppEnterpriseBaseUrl"] = c.GitHubApp.PrivateKey, c.GitHubApp.URL
	case c.SSHPrivateKey != "":
		texts["sshPrivateKey"] = c.SSHPrivateKey
	case c.BearerToken != "":
		texts["bearerToken"] = c.BearerToken
	case c.Token != "":
		texts["username"], texts["password"] = cmp.Or(c.Username, "git"), c.Token
	case c.Password != "":
		texts["username"], texts["password"] = c.Username, c.Password
	default:
		return
	}
	secret := r.secret(s.Namespace, s.Name+"-repository", map[string]string{argoSecret: "repository"}, texts)
	secret.Shared = r.settings.of().OnHub()
}

// addFields adds fields to an object that belongs to others. It sets none of its labels.
func (r *renderer) addFields(part Part, kind, name, field string, values map[string]any) *Object {
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": kind, field: values}}
	u.SetNamespace(r.settings.Namespace)
	u.SetName(name)
	o := &Object{Unstructured: u, Stage: Rest, Part: part, Partial: true}
	r.objects = append(r.objects, o)
	return o
}

// repositoryHost is the name of the Git host, without a port.
func repositoryHost(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
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
