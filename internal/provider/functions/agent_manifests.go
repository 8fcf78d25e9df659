package functions

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/flotilla/terraform-provider-flotilla/internal/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/forge"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/frame"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
	"github.com/flotilla/terraform-provider-flotilla/internal/reconciler"
)

// NewAgentManifests returns the function.
func NewAgentManifests() function.Function {
	return frame.Function{Name: "agent_manifests", Definition: agentManifestsDefinition, Run: runAgentManifests}.New()
}

var agentManifestsDefinition = function.Definition{
	Summary: "Writes what a cluster's agent needs to follow its folders",
	MarkdownDescription: "Returns the objects that `flotilla_agent` would apply, as a list of YAML documents in the order in which they have to be applied: " +
		"definitions of kinds, namespaces, the rest. For cloud-init, Azure Arc and templates of clusters, where Terraform does not reach the cluster itself.\n\n" +
		"The object's keys are `cluster`, `cluster_type` and `gitops_repo` (`{url, branch, path}`), which are required, and:\n\n" +
		"* `reconciler`: " + reconciler.AgentsInWords() + "; as the cluster type has it. For `argocd-hub` the objects are for the hub.\n" +
		"* `credentials`: for reading the repository: `{token, bearer_token, username, password, ssh_private_key, ssh_passphrase, ssh_known_hosts, " +
		"ca_certificates, github_app}`, with `github_app = {id, installation_id, private_key, url}`. **They are in the result, as a Secret**, which is not " +
		"marked as sensitive by itself: mark the credentials as sensitive, and the result is, too.\n" +
		"* `credentials_secret`: in place of these, the name of an existing Secret in the namespace of the agent, in the form that the agent reads.\n" +
		"* `install`: the agent's own manifests, if it is not installed otherwise: a text, or a list or map of texts.\n" +
		"* `feedback`: how the agent reports to the Git host about commits: `{forge, url, api_url, context, token | github_app | secret}`. `forge` is " +
		forge.Listed("`") + "; `context` is `\"flotilla/{cluster}/{host}\"` by default. For Flux, and for Argo CD in the cluster.\n" +
		"* `decryption`: how the agent decrypts files of config containers that SOPS has encrypted, as the cluster type has it: `{secret, service_account}`, both in the " +
		"namespace of the agent; `{}` is what the agent itself may use. For Flux only.\n" +
		"* `environment`, `registration`: for `argocd-hub`, how the hub reaches the cluster: `{server, cluster_ca_certificate, token | client_certificate, client_key | " +
		"exec | aws, tls_server_name, insecure, labels}`, with `exec = {command, args, env, api_version}` and `aws = {cluster_name, role_arn}`.\n" +
		"* `name` (`flotilla`), `namespace` (the agent's), `interval` (`\"1m\"`), `timeout` (`\"5m\"`).\n\n" +
		"Unknown keys are errors. While any value is unknown, so is the list.",
	Parameters: []function.Parameter{
		function.DynamicParameter{
			Name: "settings", AllowUnknownValues: true,
			MarkdownDescription: "Object that says which cluster it is, and which folders it follows.",
		},
	},
	Return: function.ListReturn{ElementType: types.StringType},
}

// runAgentManifests renders the manifests. All problems are in the one error that a function can return. A function cannot warn.
func runAgentManifests(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var argument attr.Value
	if resp.Error = req.Arguments.Get(ctx, &argument); resp.Error != nil {
		return
	}
	unknown := types.ListUnknown(types.StringType)
	value := tfvalue.Plain(argument)
	if argument.IsUnknown() {
		resp.Error = resp.Result.Set(ctx, unknown)
		return
	}
	settings, known, problems := agent.Decode(value)
	var objects []agent.Object
	if known && !agent.Failed(problems) {
		objects, problems = agent.Render(settings)
	}
	var wrong []string
	for _, problem := range problems {
		if !problem.Warning {
			wrong = append(wrong, problem.String())
		}
	}
	switch {
	case wrong != nil:
		resp.Error = function.NewArgumentFuncError(0, "\n"+strings.Join(wrong, "\n"))
		return
	case !known:
		resp.Error = resp.Result.Set(ctx, unknown)
		return
	}
	texts, err := agent.Texts(objects)
	if err != nil {
		resp.Error = function.NewFuncError(err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, texts)
}
