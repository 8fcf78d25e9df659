package agent

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
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
		Install:           texts(reader, o, "install"),
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

func texts(reader *fleet.Reader, o *fleet.ObjectReader, name string) (all []Text) {
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

func (v *settingsValidator) checkRegistration() {
	at, to := "registration", v.settings.Registration
	if !v.settings.reconciler().OnHub() {
		if to != nil {
			v.problem(at, "is for the reconciler %q", reconciler.Hub().Name)
		}
		return
	}
	v.checkLabel("environment", v.settings.Environment, true)
	if to == nil {
		v.problem(at, "is required: how the hub reaches the cluster")
		return
	}
	if to.Secret != "" {
		if problem := fleet.CheckSubdomainName(to.Secret); problem != "" {
			v.problem(at+".secret", "%q %s", to.Secret, problem)
		}
		if !reflect.DeepEqual(*to, Registration{Secret: to.Secret}) {
			v.problem(at+".secret", "cannot be set together with other attributes: the Secret has all of them")
		}
		return
	}
	if parsed, err := url.Parse(to.Server); err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil {
		v.problem(at+".server", "must be the https:// URL of the cluster's API, as the hub reaches it")
	} else if name := parsed.Hostname(); name == "localhost" || name == "kubernetes.default.svc" {
		v.problem(at+".server", "is the name by which every cluster reaches itself: give the URL by which the hub reaches this one")
	}
	ways := count(to.Token != "", to.ClientCert != "" || to.ClientKey != "", to.Exec != nil, to.AWS != nil)
	switch {
	case ways == 0:
		v.problem(at, "has none of token, client_certificate, exec and aws, of which the hub needs one")
	case ways > 1:
		v.problem(at, "has more than one of token, client_certificate, exec and aws")
	case (to.ClientCert == "") != (to.ClientKey == ""):
		v.problem(at, "has only one of client_certificate and client_key")
	}
	switch {
	case to.Insecure && to.CACertificate != "":
		v.problem(at+".insecure", "cannot be set together with cluster_ca_certificate")
	case to.CACertificate != "" && !strings.Contains(to.CACertificate, "-----BEGIN CERTIFICATE-----"):
		v.problem(at+".cluster_ca_certificate", "is no PEM text of certificates; cloud providers often give it in base64, so decode it first")
	}
	v.checkLabels(at+".labels", to.Labels)
}

func (v *settingsValidator) checkLabels(at string, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path := at + "[" + strconv.Quote(key) + "]"
		if problem := fleet.CheckLabelKey(key); problem != "" {
			v.problem(path, "%s", problem)
		}
		if problem := fleet.CheckLabelValue(labels[key]); problem != "" {
			v.problem(path, "%s", problem)
		}
		if strings.HasPrefix(key, reconciler.LabelPrefix) || strings.HasPrefix(reconciler.Hub().Agent.Registers, key+"=") {
			v.problem(path, "is a label that Flotilla sets")
		}
	}
}
