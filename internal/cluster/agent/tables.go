package agent

import (
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

// SettingsTable describes the settings.
var SettingsTable = &fleet.Table{
	Name: "settings of an agent",
	Meaning: "The argument of `provider::flotilla::agent_manifests`: the cluster, its agent and the folders that it follows. " +
		"`flotilla_agent` has the same attributes.",
	Attributes: []fleet.Attribute{
		{Name: "cluster", Required: true, Meaning: "Name of the cluster."},
		{Name: "cluster_type", Required: true, Meaning: "Name of the cluster's type."},
		{Name: "gitops_repo", Type: fleet.ObjectType, Required: true, Of: fleet.LocationTable(), Meaning: "The location that the agent follows."},
		{
			Name:    "reconciler",
			Default: reconciler.DefaultAgent,
			Allowed: reconciler.Agents(),
			Meaning: "The agent, the same as the cluster type's `reconciler`. For `argocd-hub`, the result belongs on the hub.",
		},
		{
			Name: "credentials",
			Type: fleet.ObjectType,
			Of:   CredentialsTable,
			Meaning: "Credentials for reading the repository. **The result contains them in a Secret** and is sensitive only if " +
				"they are marked as sensitive.",
		},
		{
			Name:    "credentials_secret",
			Meaning: "Name of an existing Secret in the agent's namespace and form, instead of `credentials`.",
		},
		{
			Name:    "install",
			Type:    fleet.TextsInAnyFormType,
			Meaning: "The agent's own manifests as texts of YAML documents, unless the agent is installed in another way.",
		},
		{
			Name:    "confine",
			Type:    fleet.BoolType,
			Default: true,
			Meaning: "Whether Flux' controllers in `install` get the arguments that confine the Flux objects of a namespace to the " +
				"rights of a service account there: `--default-service-account`, `--no-cross-namespace-refs` and " +
				"`--no-remote-bases`.",
		},
		{
			Name:    "feedback",
			Type:    fleet.ObjectType,
			Of:      FeedbackTable,
			Meaning: "How the agent reports commit statuses to the Git host. For Flux, and for Argo CD in the cluster.",
		},
		{
			Name: "decryption",
			Type: fleet.ObjectType,
			Of:   fleet.DecryptionTable(),
			Meaning: "How the agent decrypts SOPS files of config containers, the same as the cluster type's `decryption`. `{}` " +
				"uses the agent's own identity. For Flux only.",
		},
		{Name: "environment", Meaning: "With `argocd-hub`, the name of the environment: a hub may serve several."},
		{Name: "registration", Type: fleet.ObjectType, Of: RegistrationTable, Meaning: "With `argocd-hub`, the hub's access to the cluster."},
		{Name: "name", Default: defaultName, Meaning: "Name of the agent's objects, or the beginning of their names."},
		{Name: "namespace", Meaning: "Namespace of the agent. Default: the usual namespace of the agent."},
		{Name: "interval", Type: fleet.DurationType, Meaning: "Time between two reads of the repository. Default: `1m`."},
		{
			Name:    "timeout",
			Type:    fleet.DurationType,
			Meaning: "Time for the objects of a commit to become ready. Default: `5m`.",
		},
	},
}

// CredentialsTable describes the credentials that read the repository.
var CredentialsTable = &fleet.Table{
	Name:    "credentials of an agent",
	Meaning: "Credentials with which an agent reads the repository: a token, user name and password, an SSH key, or a GitHub App.",
	Attributes: []fleet.Attribute{
		{Name: "token", Meaning: "Access token, sent as a password."},
		{Name: "bearer_token", Meaning: "Access token, sent as a bearer token. For Flux and Argo CD."},
		{Name: "username", Meaning: "User name of a password, or of a token if the Git host requires a certain name."},
		{Name: "password", Meaning: "Password."},
		{Name: "ssh_private_key", Meaning: "SSH private key as PEM text."},
		{Name: "ssh_passphrase", Meaning: "Passphrase of the SSH private key."},
		{Name: "ssh_known_hosts", Meaning: "Host keys in the format of a known_hosts file."},
		{Name: "ca_certificates", Meaning: "Trusted certificates as PEM text."},
		appAttribute,
	},
}

var appAttribute = fleet.Attribute{Name: "github_app", Type: fleet.ObjectType, Of: appTable, Meaning: "GitHub App that replaces a token."}

var appTable = &fleet.Table{
	Name:    "GitHub App of an agent",
	Meaning: "A GitHub App whose private key gets tokens for an agent.",
	Attributes: []fleet.Attribute{
		{Name: "id", Meaning: "ID of the App."},
		{Name: "installation_id", Meaning: "ID of the App's installation."},
		{Name: "private_key", Meaning: "Private key of the App as PEM text."},
		{Name: "url", Meaning: "The API of a GitHub Enterprise Server."},
	},
}

// FeedbackTable describes reports to the Git host.
var FeedbackTable = &fleet.Table{
	Name: "feedback of an agent",
	Meaning: "How an agent reports to the Git host, for `commit_statuses` of `flotilla_compliance`. In `flotilla_agent`, `token` " +
		"and `github_app` belong to `credentials_wo.feedback`.",
	Attributes: []fleet.Attribute{
		{Name: "forge", Meaning: "The kind of the Git host: " + forge.Listed("`") + ". Unset: by the Git host's name."},
		{
			Name: "context",
			Meaning: "Context of the commit statuses. It must contain `{cluster}` and `{host}`, which distinguish clusters and " +
				"their folders. Default: `\"flotilla/{cluster}/{host}\"`.",
		},
		{Name: "url", Meaning: "URL of the repository at the Git host, where that does not follow from `gitops_repo`."},
		{Name: "api_url", Meaning: "URL of the Git host's API. Default: derived from `url`."},
		{Name: "token", Meaning: "Access token."},
		appAttribute,
		{Name: "secret", Meaning: "Name of an existing Secret that replaces a token."},
	},
}

// RegistrationTable describes a hub's access to a cluster.
var RegistrationTable = &fleet.Table{
	Name: "registration",
	Meaning: "With `argocd-hub`, the hub's access to the cluster. In `flotilla_agent`, the provider's `clusters` gives the " +
		"defaults of `server`, `cluster_ca_certificate` and `tls_server_name`, and a token or a client certificate belongs to " +
		"`credentials_wo.registration`.",
	Attributes: []fleet.Attribute{
		{
			Name: "secret",
			Meaning: "Name of an existing Secret of the hub that registers the cluster by its name. Flotilla adds its labels and " +
				"leaves the rest. Excludes all other attributes.",
		},
		{Name: "server", Meaning: "URL of the cluster's API server."},
		{Name: "cluster_ca_certificate", Meaning: "Trusted certificates as PEM text."},
		{Name: "token", Meaning: "Bearer token."},
		{Name: "client_certificate", Meaning: "Client certificate as PEM text."},
		{Name: "client_key", Meaning: "Private key of the client certificate as PEM text."},
		{Name: "tls_server_name", Meaning: "Name in the server's certificate."},
		{Name: "insecure", Type: fleet.BoolType, Default: false, Meaning: "Whether to accept any server certificate."},
		{
			Name:    "exec",
			Type:    fleet.ObjectType,
			Of:      execTable,
			Meaning: "A program in Argo CD's image that prints a credential, such as `argocd-k8s-auth`.",
		},
		{Name: "aws", Type: fleet.ObjectType, Of: awsTable, Meaning: "An EKS cluster that Argo CD accesses with its own identity."},
		{Name: "labels", Type: fleet.TextMapType, NullElements: true, Meaning: "Labels of the cluster's Secret on the hub."},
	},
}

var execTable = &fleet.Table{
	Name:    "exec of a registration",
	Meaning: "A program that prints a credential, as in a kubeconfig.",
	Attributes: []fleet.Attribute{
		{Name: "command", Required: true, Meaning: "The program."},
		{Name: "args", Type: fleet.TextsType, EmptyElements: true, Meaning: "Its arguments."},
		{Name: "env", Type: fleet.TextMapType, NullElements: true, Meaning: "Environment variables of the program."},
		{Name: "api_version", Default: "client.authentication.k8s.io/v1beta1", Meaning: "API version of its output."},
	},
}

var awsTable = &fleet.Table{
	Name:    "aws of a registration",
	Meaning: "An Amazon EKS cluster.",
	Attributes: []fleet.Attribute{
		{Name: "cluster_name", Required: true, Meaning: "Name of the cluster in AWS."},
		{Name: "role_arn", Meaning: "IAM role that Argo CD assumes."},
	},
}

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
