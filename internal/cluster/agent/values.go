package agent

import (
	"cmp"
	"encoding/base64"
	"maps"
	"net/url"
	"path"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// values returns the values of placeholders in templates of agents' objects, all strings but registration. Values whose
// names begin with "credentials." are secret and in no state.
func (s *Settings) values() map[string]any {
	c, app := &s.Credentials, cmp.Or(s.Credentials.GitHubApp, &GitHubApp{})
	username, password := c.Username, cmp.Or(c.Token, c.Password)
	switch {
	case c.Token != "":
		username = forge.TokenUser(repositoryHost(s.Repository.URL), username, "git")
	case c.Password == "":
		username = ""
	}
	values := map[string]any{
		"cluster": s.Cluster, "name": s.Name, "namespace": s.Namespace, "interval": duration(s.Interval), "timeout": duration(s.Timeout),
		"cluster_label": render.LabelValue(s.Cluster), "cluster_type_label": render.LabelValue(s.ClusterType),
		"environment_label": render.LabelValue(s.Environment),
		"url":               s.Repository.URL, "branch": s.Repository.Branch, "git_host": repositoryHost(s.Repository.URL),
		"secret": s.CredentialsSecret, "ca_secret": "", "repository_auth": s.repositoryAuth(), "no_folder": s.reconciler().NoFolder,
		"app_provider": "", "on_hub": "", "on_cluster": "",
		"credentials.username": username, "credentials.password": password, "credentials.bearer_token": c.BearerToken,
		"credentials.ssh_private_key": c.SSHPrivateKey, "credentials.ssh_known_hosts": "", "credentials.ssh_passphrase": "",
		"credentials.ca_certificates": c.CACertificates, "credentials.ca_certificates_base64": encoded(c.CACertificates),
		"credentials.https_ca_certificates": "",
		"credentials.app_id":                app.ID, "credentials.app_installation_id": app.InstallationID,
		"credentials.app_private_key": app.PrivateKey, "credentials.app_url": app.URL,
	}
	if c.GitHubApp != nil {
		values["app_provider"] = string(forge.GitHub)
	}
	if c.SSHPrivateKey != "" {
		values["credentials.ssh_known_hosts"], values["credentials.ssh_passphrase"] = c.SSHKnownHosts, c.SSHPassphrase
	} else {
		values["credentials.https_ca_certificates"] = c.CACertificates
	}
	if s.reconciler().OnHub() {
		values["on_hub"] = "true"
	} else {
		values["on_cluster"] = "true"
	}
	addDecryption(values, s.Decryption)
	s.addFeedback(values)
	addRegistration(values, cmp.Or(s.Registration, &Registration{}))
	return values
}

func (s *Settings) repositoryAuth() string {
	words := s.reconciler().Agent.Auth
	switch {
	case s.Credentials.GitHubApp != nil:
		return words["github_app"]
	case s.isSSH():
		return words["ssh_private_key"]
	case s.CredentialsSecret != "" || s.Credentials.Token != "" || s.Credentials.Password != "":
		return words["password"]
	}
	return words[""]
}

func (s *Settings) folders() []map[string]string {
	folder := func(suffix, name string) map[string]string {
		return map[string]string{
			"suffix": suffix, "path": path.Join(s.Repository.Path, name), "label": render.LabelValue(name),
			// A hub may have clusters of several environments.
			"hub_name": render.LabelValue(s.Name + "-" + s.Environment + "-" + strings.ReplaceAll(name, "/", "-")),
		}
	}
	return []map[string]string{folder("cluster-type", s.ClusterType), folder("cluster", "clusters/"+s.Cluster)}
}

func addRegistration(values map[string]any, to *Registration) {
	exec, aws := cmp.Or(to.Exec, &Exec{}), cmp.Or(to.AWS, &AWS{})
	maps.Copy(values, map[string]any{
		"registration.secret": to.Secret, "registration.server": strings.TrimRight(to.Server, "/"), "registration.insecure": to.Insecure,
		"registration.tls_server_name": to.TLSServerName, "registration.token": to.Token, "registration.labels": to.Labels,
		"registration.ca_certificate_base64":     encoded(to.CACertificate),
		"registration.client_certificate_base64": encoded(to.ClientCert), "registration.client_key_base64": encoded(to.ClientKey),
		"registration.command": exec.Command, "registration.api_version": exec.APIVersion, "registration.args": "",
		"registration.env": "", "registration.aws_cluster_name": aws.ClusterName, "registration.aws_role_arn": aws.RoleARN,
	})
	if len(exec.Args) > 0 {
		values["registration.args"] = exec.Args
	}
	if len(exec.Env) > 0 {
		values["registration.env"] = exec.Env
	}
}

func addDecryption(values map[string]any, by *fleet.Decryption) {
	provider := ""
	if by != nil {
		provider = "sops"
	}
	by = cmp.Or(by, &fleet.Decryption{})
	maps.Copy(
		values,
		map[string]any{"decryption.provider": provider, "decryption.secret": by.Secret, "decryption.service_account": by.ServiceAccount},
	)
}

func (s *Settings) addFeedback(values map[string]any) {
	f := cmp.Or(s.Feedback, &Reporting{})
	app := cmp.Or(f.App, &GitHubApp{})
	replace := func(suffix string) string {
		return strings.NewReplacer(clusterPlaceholder, s.Cluster, hostPlaceholder, suffix).Replace(f.Context)
	}
	ofType, own := replace("cluster-type"), replace("cluster")
	maps.Copy(values, map[string]any{
		"feedback.url": f.URL, "feedback.secret": f.Secret, "feedback.cluster_type_context": ofType, "feedback.cluster_context": own,
		"feedback.provider": f.Forge.Kind().Flux, "feedback.subscription": "", "feedback.webhook": "",
		"credentials.feedback_token": f.Token, "credentials.feedback_app_id": app.ID,
		"credentials.feedback_app_installation_id": app.InstallationID,
		"credentials.feedback_app_private_key":     app.PrivateKey, "credentials.feedback_app_url": app.URL,
	})
	choose := func(own, ofType string) string {
		chosen := filler{values: map[string]any{"name": s.Name, "feedback.cluster_context": own, "feedback.cluster_type_context": ofType}}
		text, _ := chosen.text(s.reconciler().Agent.NoticeContext).(string)
		return text
	}
	context, key := choose(own, ofType), choose(forge.StatusKey(own), forge.StatusKey(ofType))
	values["feedback.context"] = context
	for _, notice := range s.reconciler().Agent.Notices {
		path, body := "", ""
		if s.Feedback != nil && f.App == nil {
			path, body = statusRequest(f, &notice, context, key)
		}
		values["feedback."+notice.Name+"_path"], values["feedback."+notice.Name+"_body"] = path, body
	}
	switch {
	case s.Feedback == nil:
	case f.App != nil:
		values["feedback.subscription"] = s.Name + "." + string(forge.GitHub)
	default:
		token := "$" + s.Name + "-token"
		if f.Secret != "" {
			token = "$" + f.Secret + ":token"
		}
		values["feedback.subscription"], values["feedback.webhook"] = s.Name+"."+s.Name, webhookService(f, token)
	}
}

func encoded(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }

// duration formats a duration like Kubernetes' library, as API servers return it.
func duration(d time.Duration) string { return d.Round(time.Second).String() }

func repositoryHost(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return parsed.Hostname()
}

// Texts encodes objects as YAML documents, without "---".
func Texts(objects []StagedObject) ([]string, error) {
	texts := make([]string, len(objects))
	for i := range objects {
		var text strings.Builder
		encoder := yaml.NewEncoder(&text)
		encoder.SetIndent(2)
		if err := encoder.Encode(objects[i].Object); err != nil {
			return nil, err
		}
		if err := encoder.Close(); err != nil {
			return nil, err
		}
		texts[i] = text.String()
	}
	return texts, nil
}
