package agent

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

const maxDuration = 24 * time.Hour

// Decode decodes settings from an HCL value and checks their types; [Render] checks the values. known is false if any
// setting is not known yet.
func Decode(value any) (settings Settings, known bool, problems []SettingsProblem) {
	reader := &fleet.Reader{}
	if object := reader.Object(SettingsTable, nil, value); object != nil {
		settings = decodeSettings(reader, object)
		object.Finish()
	}
	for _, finding := range reader.Findings {
		problems = append(problems, SettingsProblem{Finding: finding})
	}
	return settings, !reader.Unknown, problems
}

func decodeSettings(reader *fleet.Reader, o *fleet.ObjectReader) Settings {
	o.Require("gitops_repo", "is required")
	return Settings{
		Cluster: o.Required("cluster"), ClusterType: o.Required("cluster_type"),
		Reconciler:  o.OneOf("reconciler"),
		Environment: o.Text("environment"),
		Name:        o.Text("name"), Namespace: o.Text("namespace"),
		Interval: fleet.ReadDuration(o, "interval", maxDuration), Timeout: fleet.ReadDuration(o, "timeout", maxDuration),
		CredentialsSecret: o.Text("credentials_secret"),
		Install:           readTexts(reader, o, "install"),
		Unconfined:        !o.Bool("confine"),
		Repository: fleet.ReadObject(o, "gitops_repo", func(of *fleet.ObjectReader) folder.Location {
			return folder.Location{URL: of.Required("url"), Branch: of.Required("branch"), Path: of.Text("path")}
		}),
		Credentials: fleet.ReadObject(o, "credentials", decodeCredentials),
		Feedback: fleet.ReadObject(o, "feedback", func(of *fleet.ObjectReader) *Reporting {
			return &Reporting{
				Forge: forge.Forge(of.Text("forge")), Context: of.Text("context"), URL: of.Text("url"), APIURL: of.Text("api_url"),
				Token: of.Text("token"), App: fleet.ReadObject(of, "github_app", decodeApp), Secret: of.Text("secret"),
			}
		}),
		Decryption: fleet.ReadObject(o, "decryption", func(of *fleet.ObjectReader) *fleet.Decryption {
			return &fleet.Decryption{Secret: of.Text("secret"), ServiceAccount: of.Text("service_account")}
		}),
		Registration: fleet.ReadObject(o, "registration", decodeRegistration),
	}
}

func decodeCredentials(o *fleet.ObjectReader) Credentials {
	return Credentials{
		Token: o.Text("token"), BearerToken: o.Text("bearer_token"), Username: o.Text("username"), Password: o.Text("password"),
		SSHPrivateKey: armor.Normalize(o.Text("ssh_private_key")), SSHPassphrase: o.Text("ssh_passphrase"),
		SSHKnownHosts:  o.Text("ssh_known_hosts"),
		CACertificates: armor.Normalize(o.Text("ca_certificates")), GitHubApp: fleet.ReadObject(o, "github_app", decodeApp),
	}
}

func decodeApp(o *fleet.ObjectReader) *GitHubApp {
	return &GitHubApp{
		ID:             o.Text("id"),
		InstallationID: o.Text("installation_id"),
		PrivateKey:     armor.Normalize(o.Text("private_key")),
		URL:            o.Text("url"),
	}
}

func decodeRegistration(o *fleet.ObjectReader) *Registration {
	return &Registration{
		Secret: o.Text("secret"),
		Server: o.Text("server"), CACertificate: armor.Normalize(o.Text("cluster_ca_certificate")), Token: o.Text("token"),
		ClientCert: armor.Normalize(o.Text("client_certificate")), ClientKey: armor.Normalize(o.Text("client_key")),
		TLSServerName: o.Text("tls_server_name"), Insecure: o.Bool("insecure"),
		Exec: fleet.ReadObject(o, "exec", func(of *fleet.ObjectReader) *Exec {
			return &Exec{
				Command:    of.Required("command"),
				Args:       of.Texts("args"),
				Env:        of.TextMap("env"),
				APIVersion: fleet.ReadTextOrDefault(of, "api_version"),
			}
		}),
		AWS: fleet.ReadObject(o, "aws", func(of *fleet.ObjectReader) *AWS {
			return &AWS{ClusterName: of.Required("cluster_name"), RoleARN: of.Text("role_arn")}
		}),
		Labels: o.TextMap("labels"),
	}
}

func readTexts(reader *fleet.Reader, o *fleet.ObjectReader, name string) (all []Text) {
	value, path := o.Value(name)
	elements, are := fleet.Elements(path, value)
	if !are && value != nil {
		elements = []fleet.Element{{Path: path, Value: value}}
	}
	for _, element := range elements {
		switch value := element.Value.(type) {
		case fleet.Unknown:
			reader.Unknown = true
		case string:
			all = append(all, Text{Path: element.Path.String(), Text: value})
		default:
			what := "must be a text of YAML documents"
			if !are {
				what += ", or a list or map of such texts"
			}
			reader.Report(element.Path, "%s", what)
		}
	}
	return all
}
