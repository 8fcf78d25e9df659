package agent

import (
	"maps"
	"slices"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
)

// maxDuration is the longest interval and timeout.
const maxDuration = 24 * time.Hour

// Decode reads settings from an HCL value. known is false while any setting is not known yet; the types of those that
// are known are checked. [Render] checks their values.
func Decode(value any) (settings Settings, known bool, problems []Problem) {
	reader := &fleet.Reader{}
	if object := reader.Object(SettingsTable, nil, value); object != nil {
		settings = decodeSettings(reader, object)
		object.Finish()
	}
	for _, finding := range reader.Findings {
		problems = append(problems, Problem{Finding: finding})
	}
	return settings, !reader.Unknown, problems
}

func decodeSettings(reader *fleet.Reader, o *fleet.Object) Settings {
	s := Settings{
		Cluster: o.Required("cluster"), ClusterType: o.Required("cluster_type"),
		Reconciler:  o.OneOf("reconciler"),
		Environment: o.Text("environment"),
		Name:        o.Text("name"), Namespace: o.Text("namespace"),
		Interval: o.Duration("interval", maxDuration), Timeout: o.Duration("timeout", maxDuration),
		CredentialsSecret: o.Text("credentials_secret"),
		Install:           texts(reader, o, "install"),
	}
	if !o.Has("gitops_repo") {
		o.Report("gitops_repo", "is required")
	} else if repository := o.Object("gitops_repo"); repository != nil {
		s.Repository = folder.Location{URL: repository.Required("url"), Branch: repository.Required("branch"), Path: repository.Text("path")}
		repository.Finish()
	}
	if credentials := o.Object("credentials"); credentials != nil {
		s.Credentials = decodeCredentials(credentials)
	}
	if feedback := o.Object("feedback"); feedback != nil {
		s.Feedback = &Reporting{
			Forge: forge.Forge(feedback.Text("forge")), Context: feedback.Text("context"), URL: feedback.Text("url"), APIURL: feedback.Text("api_url"),
			Token: feedback.Text("token"), App: decodeApp(feedback), Secret: feedback.Text("secret"),
		}
		feedback.Finish()
	}
	if decryption := o.Object("decryption"); decryption != nil {
		s.Decryption = &fleet.Decryption{Secret: decryption.Text("secret"), ServiceAccount: decryption.Text("service_account")}
		decryption.Finish()
	}
	if registration := o.Object("registration"); registration != nil {
		s.Registration = decodeRegistration(registration)
	}
	return s
}

func decodeCredentials(o *fleet.Object) Credentials {
	c := Credentials{
		Token: o.Text("token"), BearerToken: o.Text("bearer_token"), Username: o.Text("username"), Password: o.Text("password"),
		SSHPrivateKey: o.Text("ssh_private_key"), SSHPassphrase: o.Text("ssh_passphrase"), SSHKnownHosts: o.Text("ssh_known_hosts"),
		CACertificates: o.Text("ca_certificates"), GitHubApp: decodeApp(o),
	}
	o.Finish()
	return c
}

func decodeApp(o *fleet.Object) *GitHubApp {
	app := o.Object("github_app")
	if app == nil {
		return nil
	}
	decoded := &GitHubApp{ID: app.Text("id"), InstallationID: app.Text("installation_id"), PrivateKey: app.Text("private_key"), URL: app.Text("url")}
	app.Finish()
	return decoded
}

func decodeRegistration(o *fleet.Object) *Registration {
	r := &Registration{
		Server: o.Text("server"), CACertificate: o.Text("cluster_ca_certificate"), Token: o.Text("token"),
		ClientCert: o.Text("client_certificate"), ClientKey: o.Text("client_key"), TLSServerName: o.Text("tls_server_name"), Insecure: o.Bool("insecure"),
	}
	if exec := o.Object("exec"); exec != nil {
		r.Exec = &Exec{
			Command: exec.Required("command"), Args: exec.Texts("args"), Env: exec.TextMap("env"),
			APIVersion: exec.TextOrDefault("api_version"),
		}
		exec.Finish()
	}
	if aws := o.Object("aws"); aws != nil {
		r.AWS = &AWS{ClusterName: aws.Required("cluster_name"), RoleARN: aws.Text("role_arn")}
		aws.Finish()
	}
	r.Labels = o.TextMap("labels")
	o.Finish()
	return r
}

// texts reads one text, or a list or map of texts.
func texts(reader *fleet.Reader, o *fleet.Object, name string) []Text {
	value, path := o.Value(name)
	var all []Text
	add := func(at *fleet.Path, value any) {
		switch value := value.(type) {
		case fleet.Unknown:
			reader.Unknown = true
		case string:
			all = append(all, Text{Path: at.String(), Text: value})
		default:
			reader.Report(at, "must be a text of YAML documents")
		}
	}
	switch value := value.(type) {
	case nil:
	case fleet.Unknown:
		reader.Unknown = true
	case []any:
		for i, element := range value {
			add(path.Index(i), element)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			add(path.Key(key), value[key])
		}
	case string:
		add(path, value)
	default:
		reader.Report(path, "must be a text of YAML documents, or a list or map of such texts")
	}
	return all
}
