package agent

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
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
