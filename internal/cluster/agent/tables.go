package agent

import (
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// SettingsTable describes the settings.
var SettingsTable = &fleet.Table{
	Name: "settings of an agent",
	Meaning: "The argument of `provider::flotilla::agent_manifests`: which cluster it is, and which folders it follows. " +
		"`flotilla_agent` has the same as attributes of its own.",
	Attributes: []fleet.Attribute{
		{Name: "cluster", Required: true, Meaning: "Name of the cluster."},
		{Name: "cluster_type", Required: true, Meaning: "Name of its cluster type."},
		{Name: "gitops_repo", Type: fleet.ObjectType, Required: true, Of: fleet.LocationTable(), Meaning: "The location that the agent follows."},
		{
			Name:    "reconciler",
			Default: reconciler.DefaultAgent,
			Allowed: reconciler.Agents(),
			Meaning: "The agent, as the cluster type has it. For `argocd-hub` the objects are for the hub.",
		},
		{
			Name: "credentials",
			Type: fleet.ObjectType,
			Of:   CredentialsTable,
			Meaning: "Credentials for reading the repository. **They are in the result, as a Secret**, which is not marked as sensitive by " +
				"itself: mark the credentials as sensitive, and the result is, too.",
		},
		{
			Name:    "credentials_secret",
			Meaning: "In place of these, the name of an existing Secret in the namespace of the agent, in the form that the agent reads.",
		},
		{
			Name:    "install",
			Type:    fleet.TextsInAnyFormType,
			Meaning: "The agent's own manifests, texts of YAML documents, if it is not installed otherwise.",
		},
		{
			Name:    "confine",
			Type:    fleet.BoolType,
			Default: true,
			Meaning: "Whether the controllers of Flux among `install` get the arguments that confine Flux' objects in a namespace " +
				"to the rights of a service account there: `--default-service-account`, `--no-cross-namespace-refs` and `--no-remote-bases`.",
		},
		{
			Name:    "feedback",
			Type:    fleet.ObjectType,
			Of:      FeedbackTable,
			Meaning: "How the agent reports to the Git host about commits. For Flux, and for Argo CD in the cluster.",
		},
		{
			Name: "decryption",
			Type: fleet.ObjectType,
			Of:   fleet.DecryptionTable(),
			Meaning: "How the agent decrypts files of config containers that SOPS has encrypted, as the cluster type has it; `{}` is what " +
				"the agent itself may use. For Flux only.",
		},
		{Name: "environment", Meaning: "For `argocd-hub`, the name of the environment: a hub may have clusters of several."},
		{Name: "registration", Type: fleet.ObjectType, Of: RegistrationTable, Meaning: "For `argocd-hub`, how the hub reaches the cluster."},
		{Name: "name", Default: defaultName, Meaning: "Name of the objects, or the beginning of their names."},
		{Name: "namespace", Meaning: "Namespace of the agent. Unset: the agent's usual one."},
		{Name: "interval", Type: fleet.DurationType, Meaning: "How often the agent reads the repository. Unset: `1m`."},
		{
			Name:    "timeout",
			Type:    fleet.DurationType,
			Meaning: "How long the agent waits for the objects of a commit to become ready. Unset: `5m`.",
		},
	},
}

// CredentialsTable describes the credentials that read the repository.
var CredentialsTable = &fleet.Table{
	Name: "credentials of an agent",
	Meaning: "Credentials with which an agent reads the repository: " +
		"a token, a bearer's token, user name and password, a key for ssh, or a GitHub App.",
	Attributes: []fleet.Attribute{
		{Name: "token", Meaning: "Access token, sent as a password."},
		{Name: "bearer_token", Meaning: "Access token, sent as a bearer's token, for Flux and Argo CD."},
		{Name: "username", Meaning: "User name for a password, or for a token where the Git host requires a certain one."},
		{Name: "password", Meaning: "Password."},
		{Name: "ssh_private_key", Meaning: "PEM text of the private key for ssh."},
		{Name: "ssh_passphrase", Meaning: "Its passphrase."},
		{Name: "ssh_known_hosts", Meaning: "Host keys, as in a known_hosts file."},
		{Name: "ca_certificates", Meaning: "PEM text of certificates that are trusted."},
		appAttribute,
	},
}

var appAttribute = fleet.Attribute{Name: "github_app", Type: fleet.ObjectType, Of: appTable, Meaning: "A GitHub App in place of a token."}

var appTable = &fleet.Table{
	Name:    "GitHub App of an agent",
	Meaning: "A GitHub App, with whose key an agent gets tokens.",
	Attributes: []fleet.Attribute{
		{Name: "id", Meaning: "Id of the App."},
		{Name: "installation_id", Meaning: "Id of its installation."},
		{Name: "private_key", Meaning: "PEM text of its private key."},
		{Name: "url", Meaning: "The API of a GitHub Enterprise Server."},
	},
}

// FeedbackTable describes reports to the Git host.
var FeedbackTable = &fleet.Table{
	Name: "feedback of an agent",
	Meaning: "The settings with which an agent reports to the Git host, for `commit_statuses` of `flotilla_compliance`. " +
		"With `flotilla_agent`, `token` and `github_app` belong to `credentials_wo.feedback`.",
	Attributes: []fleet.Attribute{
		{Name: "forge", Meaning: "The kind of the Git host: " + forge.Listed("`") + ". Unset: by the Git host's name."},
		{
			Name: "context",
			Meaning: "The context of statuses, which distinguishes clusters and their folders by `{cluster}` and `{host}`. " +
				"Unset: `\"flotilla/{cluster}/{host}\"`.",
		},
		{Name: "url", Meaning: "URL of the repository at the Git host, where that does not follow from `gitops_repo`."},
		{Name: "api_url", Meaning: "URL of the Git host's API, where that does not follow."},
		{Name: "token", Meaning: "Access token."},
		appAttribute,
		{Name: "secret", Meaning: "Name of an existing Secret, in place of a token."},
	},
}

// RegistrationTable describes a hub's access to a cluster.
var RegistrationTable = &fleet.Table{
	Name: "registration",
	Meaning: "With `argocd-hub`, how the hub reaches the cluster. With `flotilla_agent`, `server`, `cluster_ca_certificate` " +
		"and `tls_server_name` are by default those of the provider's `clusters`, and a token " +
		"or a client certificate belongs to `credentials_wo.registration`.",
	Attributes: []fleet.Attribute{
		{Name: "server", Meaning: "URL of the cluster's API server."},
		{Name: "cluster_ca_certificate", Meaning: "PEM text of the certificates that are trusted."},
		{Name: "token", Meaning: "Bearer token."},
		{Name: "client_certificate", Meaning: "PEM text of a certificate."},
		{Name: "client_key", Meaning: "PEM text of its private key."},
		{Name: "tls_server_name", Meaning: "Name that the server's certificate must have."},
		{Name: "insecure", Type: fleet.BoolType, Default: false, Meaning: "Whether the server's certificate is not checked."},
		{
			Name:    "exec",
			Type:    fleet.ObjectType,
			Of:      execTable,
			Meaning: "A program that Argo CD has, which prints a credential, such as `argocd-k8s-auth`.",
		},
		{Name: "aws", Type: fleet.ObjectType, Of: awsTable, Meaning: "A cluster of Amazon EKS, which Argo CD itself reaches."},
		{Name: "labels", Type: fleet.TextMapType, NullElements: true, Meaning: "Labels of the cluster's Secret on the hub."},
	},
}

var execTable = &fleet.Table{
	Name:    "exec of a registration",
	Meaning: "A program that prints a credential, as in a kubeconfig.",
	Attributes: []fleet.Attribute{
		{Name: "command", Required: true, Meaning: "The program."},
		{Name: "args", Type: fleet.TextsType, EmptyElements: true, Meaning: "Its arguments."},
		{Name: "env", Type: fleet.TextMapType, NullElements: true, Meaning: "Environment variables for it."},
		{Name: "api_version", Default: "client.authentication.k8s.io/v1beta1", Meaning: "The version of its answers."},
	},
}

var awsTable = &fleet.Table{
	Name:    "aws of a registration",
	Meaning: "A cluster of Amazon EKS.",
	Attributes: []fleet.Attribute{
		{Name: "cluster_name", Required: true, Meaning: "Name of the cluster at Amazon."},
		{Name: "role_arn", Meaning: "Role that Argo CD takes."},
	},
}
