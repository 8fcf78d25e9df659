//go:build unix

package provider_test

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// cloudAttributes replaces the clouds' providers, which tests do not have, by local values with attributes in the same form, unknown
// before the apply. The behaviour of clouds is not tested.
var cloudAttributes = map[string]string{
	"azurerm_kubernetes_cluster": `kube_config = [{
      host = made.output.host, cluster_ca_certificate = base64encode(made.output.ca)
      client_certificate = base64encode(made.output.certificate), client_key = base64encode(made.output.key)
    }]`,
	"aws_eks_cluster":          `endpoint = made.output.host, certificate_authority = [{ data = base64encode(made.output.ca) }]`,
	"google_container_cluster": `endpoint = trimprefix(made.output.host, "https://"), master_auth = [{ cluster_ca_certificate = base64encode(made.output.ca) }]`,
}

const cloudStores = `
resource "terraform_data" "store" {
  for_each = local.stores
  input    = { host = "%s/${each.key}", ca = file("ca.pem"), certificate = file("certificate.pem"), key = file("key.pem") }
}

variable "gitops_token" {
  default = "a-token"
}

variable "status_token" {
  default = "another-token"
}

locals {
  %s = { store = { for name, made in terraform_data.store : name => { name = name, %s } } }

  workspaces = [{ name = "retail" }]
  workloads = [{
    name = "checkout", workspace = "retail"
    deployment_targets = { live = { environment = "prod", manifests = { repo = "https://git.example.com/checkout", tag = "v1" } } }
  }]
  target_policies = [{ name = "large", deployment_target_selector = {}, cluster_selector = { match_labels = { size = "large" } } }]
}
`

// cloudConfiguration is the guide's configuration for a cloud, with a stand-in for its clusters.
type cloudConfiguration struct {
	t      *testing.T
	w      workdir
	api    *standInCluster
	url    string // of the GitOps repository
	blocks map[string]string
}

var (
	commandPattern = regexp.MustCompile(`command( *)= "(kubelogin|aws|gke-gcloud-auth-plugin)"`)
	versionPattern = regexp.MustCompile(`api_version *= "(.*)"`)
)

// newCloudConfiguration combines blocks of the guide. Later texts override blocks of earlier ones.
func newCloudConfiguration(t *testing.T, tool, cloud string, texts ...string) *cloudConfiguration {
	t.Helper()
	c := &cloudConfiguration{t: t, api: &standInCluster{}, url: bare(t), blocks: map[string]string{}}
	url, certificate := c.api.start(t)
	for _, text := range texts {
		maps.Copy(c.blocks, hclBlocks(t, text))
	}
	for label := range c.blocks {
		if strings.HasPrefix(label, "resource "+cloud+" ") || strings.HasPrefix(label, "resource azurerm_") {
			delete(c.blocks, label)
		}
	}
	const assignment = "resource flotilla_assignment prod"
	c.blocks[assignment] = strings.Replace(
		c.blocks[assignment],
		"= local.gitops_repo",
		fmt.Sprintf("= { url = %q, branch = \"prod\" }", c.url),
		1,
	)
	c.w = newWorkdir(t, tool, map[string]string{"required.tf": requiredProviders})
	clientCertificate, key := kubetest.SelfSigned(t)
	for name, text := range map[string]string{
		"ca.pem": certificate, "certificate.pem": clientCertificate, "key.pem": key, "cloud.tf": fmt.Sprintf(cloudStores, url, cloud, cloudAttributes[cloud]),
		"flux.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: flux-system}\n",
	} {
		writeFile(t, filepath.Join(c.w.path, name), text)
	}
	c.writeFiles(cloud)
	return c
}

// writeFiles writes the blocks, and replaces the resources and programs of the cloud.
func (c *cloudConfiguration) writeFiles(cloud string) {
	c.t.Helper()
	var all strings.Builder
	for _, label := range slices.Sorted(maps.Keys(c.blocks)) {
		all.WriteString(c.blocks[label] + "\n")
	}
	text := strings.ReplaceAll(all.String(), cloud+".store", "local."+cloud+".store")
	text = strings.ReplaceAll(text, "aws_eks_node_group.store", "terraform_data.store")
	if commandMatch := commandPattern.FindStringSubmatch(text); commandMatch != nil {
		program := filepath.Join(c.w.path, commandMatch[2])
		text = commandPattern.ReplaceAllLiteralString(text, fmt.Sprintf("command = %q", program))
		script := fmt.Sprintf(
			"#!/bin/sh\necho \"$*\" >>'%s.asked'\necho '{\"kind\":\"ExecCredential\",\"apiVersion\":%q,\"status\":{\"token\":\"t\"}}'\n",
			program,
			versionPattern.FindStringSubmatch(text)[1],
		)
		if err := os.WriteFile(program, []byte(script), 0o755); err != nil {
			c.t.Fatal(err)
		}
	}
	if strings.Contains(text, "azurerm_kubernetes_cluster.") && !strings.Contains(text, "local.azurerm_kubernetes_cluster.") {
		c.t.Fatalf("the text still has resources of a cloud:\n%s", text)
	}
	writeFile(c.t, filepath.Join(c.w.path, "main.tf"), text)
}

// expectObjects expects objects on a cluster, or their absence.
func (c *cloudConfiguration) expectObjects(cluster string, want bool, paths ...string) {
	c.t.Helper()
	c.api.mu.Lock()
	defer c.api.mu.Unlock()
	for _, path := range paths {
		if (c.api.objects[cluster+"/"+path] != nil) != want {
			c.t.Errorf("cluster %s has %s: %v; it has %q", cluster, path, !want, slices.Sorted(maps.Keys(c.api.objects)))
		}
	}
}

func (c *cloudConfiguration) programArguments(program string) string {
	c.t.Helper()
	return readFile(c.t, filepath.Join(c.w.path, program+".asked"))
}

const (
	clusterKustomization = "apis/kustomize.toolkit.fluxcd.io/v1/namespaces/flux-system/kustomizations/flotilla-cluster"
	applyCommand         = "apply -input=false -auto-approve"
	emptyPlanCommand     = "plan -input=false -detailed-exitcode"
)

func (c *cloudConfiguration) runTool(command string) {
	c.t.Helper()
	c.w.run(strings.Fields(command)...)
}

func TestTheGuideOnOnboardingShowsHCLForClouds(t *testing.T) {
	t.Parallel()
	block := func(part string) string { return guideBlock(t, onboardingGuide, part) }
	azure := block(`resource "azurerm_kubernetes_cluster" "store"`)
	for name, test := range map[string]func(t *testing.T, tool string){
		"azure": func(t *testing.T, tool string) {
			c := newCloudConfiguration(t, tool, "azurerm_kubernetes_cluster", azure)
			plan := c.w.plan()
			if lines := fieldText(resourceChange(t, plan, "flotilla_assignment.prod").After, "changes"); !strings.Contains(lines, "+ clusters/berlin/checkout-live") {
				t.Errorf("with known labels: got changes %s", lines)
			}
			if !resourceChange(t, plan, `flotilla_agent.store["berlin"]`).Actions.Create() { // although its cluster is unreachable before the apply
				t.Error("the agent is not planned")
			}
			c.expectObjects("berlin", false, clusterKustomization)
			// A label that is unknown before the apply.
			labels := c.blocks["locals fleet"]
			c.blocks["locals fleet"] = strings.Replace(labels, "region = store.location", "region = azurerm_kubernetes_cluster.store[name].kube_config[0].host", 1)
			c.writeFiles("azurerm_kubernetes_cluster")
			if unknown, _ := resourceChange(t, c.w.plan(), "flotilla_assignment.prod").AfterUnknown.(map[string]any); unknown["changes"] != true || c.blocks["locals fleet"] == labels {
				t.Errorf("with an unknown label: got unknown attributes %v, want changes", unknown)
			}
			c.blocks["locals fleet"] = labels
			c.writeFiles("azurerm_kubernetes_cluster")
			c.runTool(applyCommand)
			c.expectObjects("berlin", true, clusterKustomization)
			c.expectObjects("lyon", true, clusterKustomization, "api/v1/namespaces/flux-system/secrets/flotilla-repository")
			if tree := git(t, c.url, "ls-tree", "-r", "--name-only", "prod"); !strings.Contains(tree, "clusters/berlin/checkout-live/") || strings.Contains(tree, "clusters/lyon/checkout-live/") {
				t.Errorf("the repository has\n%s", tree)
			}
			c.runTool(emptyPlanCommand)
			// A command replaces the certificate and its key.
			certificates := regexp.MustCompile(`(?m)^ *client_certificate .*\n *client_key .*\n`)
			former := c.blocks["provider flotilla"]
			if c.blocks["provider flotilla"] = certificates.ReplaceAllLiteralString(former, block(`"kubelogin"`)); c.blocks["provider flotilla"] == former {
				t.Fatalf("the provider has %s", former)
			}
			c.writeFiles("azurerm_kubernetes_cluster")
			c.runTool(emptyPlanCommand)
			if arguments := c.programArguments("kubelogin"); !strings.HasPrefix(arguments, "get-token --login azurecli --server-id ") {
				t.Errorf("got arguments %q of kubelogin", arguments)
			}
			// The apply that deletes a cluster removes it from the provider's clusters, and its agent from the state.
			stores := c.blocks["locals gitops_repo"]
			if c.blocks["locals gitops_repo"] = regexp.MustCompile(`(?m)^ *lyon .*\n`).ReplaceAllLiteralString(stores, ""); c.blocks["locals gitops_repo"] == stores {
				t.Fatalf("the guide has no lyon: %s", stores)
			}
			c.writeFiles("azurerm_kubernetes_cluster")
			output := strings.Join(strings.Fields(c.w.run(append(strings.Fields(applyCommand), "-no-color")...)), " ")
			if !strings.Contains(output, "Warning: ") || !strings.Contains(output, "Secret flux-system/flotilla-repository") || strings.Contains(c.w.run("state", "list"), "lyon") {
				t.Errorf("the apply that removes a cluster: got %s", output)
			}
			c.expectObjects("lyon", true, clusterKustomization)
		},
		"amazon": func(t *testing.T, tool string) {
			c := newCloudConfiguration(t, tool, "aws_eks_cluster", azure, block(`"eks", "get-token"`))
			const agent = "resource flotilla_agent store"
			if !strings.Contains(c.blocks[agent], "  wait         = true\n") {
				t.Fatalf("the agent is %s", c.blocks[agent])
			}
			c.blocks[agent] = strings.Replace(c.blocks[agent], "  wait         = true\n", "", 1) // the stand-in has no Flux that becomes ready
			c.writeFiles("aws_eks_cluster")
			c.runTool(applyCommand)
			c.expectObjects("berlin", true, clusterKustomization)
			if arguments := strings.Fields(c.programArguments("aws")); !slices.Contains(arguments, "berlin") || !slices.Contains(arguments, "lyon") {
				t.Errorf("got arguments %q of aws", arguments)
			}
			c.runTool(emptyPlanCommand)
		},
		"google, with feedback": func(t *testing.T, tool string) {
			agent := hclBlocks(t, azure)["resource flotilla_agent store"]
			_, attributes, _ := strings.Cut(strings.ReplaceAll(agent, "azurerm_kubernetes_cluster", "google_container_cluster"), "{\n")
			attributes = regexp.MustCompile(`(?m)^  (install|credentials_wo) .*\n`).ReplaceAllLiteralString(strings.TrimSuffix(attributes, "}"), "")
			feedback := strings.Replace(block("feedback       ="), "  # …\n", attributes, 1)
			c := newCloudConfiguration(t, tool, "google_container_cluster", azure, block("gke-gcloud-auth-plugin"), feedback)
			c.runTool(applyCommand)
			const namespace = "namespaces/flux-system/"
			c.expectObjects("berlin", true, clusterKustomization, "apis/notification.toolkit.fluxcd.io/v1beta3/"+namespace+"providers/flotilla-status",
				"apis/notification.toolkit.fluxcd.io/v1beta3/"+namespace+"alerts/flotilla-status", "api/v1/"+namespace+"secrets/flotilla-status")
			c.api.mu.Lock()
			spec := fmt.Sprint(c.api.objects["berlin/apis/notification.toolkit.fluxcd.io/v1beta3/"+namespace+"providers/flotilla-status"]["spec"])
			c.api.mu.Unlock()
			for _, want := range []string{"type:github", "'flotilla/berlin/cluster'", "'flotilla/berlin/cluster-type'"} {
				if !strings.Contains(spec, want) {
					t.Errorf("the Provider of Flux has %s, without %s", spec, want)
				}
			}
			if c.programArguments("gke-gcloud-auth-plugin") == "" {
				t.Error("the plugin was not called")
			}
			c.runTool(emptyPlanCommand)
		},
		"a hub": func(t *testing.T, tool string) {
			// The provider's clusters include the hub.
			amazon := strings.Replace(block(`"eks", "get-token"`), "clusters = {\n", "clusters = merge({ central = { host = replace(terraform_data.store[\"berlin\"].output.host, \"berlin\", \"central\"), "+
				"cluster_ca_certificate = file(\"ca.pem\"), token = \"t\" } }, {\n", 1)
			blocks := hclBlocks(t, strings.Replace(amazon, "    }\n  }\n}\n", "    }\n  })\n}\n", 1))
			c := newCloudConfiguration(t, tool, "aws_eks_cluster", azure, blocks["provider flotilla"], strings.ReplaceAll(block(`hub          = "central"`), "aws_iam_role.argocd.arn", `"arn:aws:iam::1:role/argocd"`))
			fleet := c.blocks["locals fleet"]
			c.blocks["locals fleet"] = strings.Replace(fleet, `reconciler = "flux"`, `reconciler = "argocd-hub"`, 1)
			c.writeFiles("aws_eks_cluster")
			c.runTool(applyCommand)
			const namespace = "namespaces/argocd/"
			argo := func(object string) string { return "apis/argoproj.io/v1alpha1/" + namespace + object }
			c.expectObjects("central", true, argo("applicationsets/flotilla-prod-store"), argo("applications/flotilla-prod-store-hub"), argo("applications/flotilla-prod-clusters-berlin"),
				argo("applications/flotilla-prod-clusters-berlin-hub"), "api/v1/"+namespace+"secrets/flotilla-prod-clusters-berlin", argo("appprojects/flotilla"))
			c.api.mu.Lock()
			defer c.api.mu.Unlock()
			for key := range c.api.objects {
				if !strings.HasPrefix(key, "central/") {
					t.Errorf("a cluster other than the hub has %s", key)
				}
			}
			labels := fmt.Sprint(c.api.objects["central/api/v1/"+namespace+"secrets/flotilla-prod-clusters-berlin"]["metadata"])
			selector := fmt.Sprint(c.api.objects["central/"+argo("applicationsets/flotilla-prod-store")]["spec"])
			for _, label := range []string{"flotilla.dev/environment:prod", "flotilla.dev/cluster-type:store"} {
				if !strings.Contains(labels, label) || !strings.Contains(selector, label) {
					t.Errorf("label %s is missing: the Secret has %s, and the ApplicationSet selects by %s", label, labels, selector)
				}
			}
		},
	} {
		for tool, path := range acceptanceTools(t) {
			t.Run(name+"/"+tool, func(t *testing.T) {
				t.Parallel()
				test(t, path)
			})
		}
	}
}

// The example's output has the form that the provider azapi expects.
func TestTheGuideOnOnboardingShowsHCLForArc(t *testing.T) {
	t.Parallel()
	arc := guideExample(t, onboardingGuide, "examples/onboarding/azure-arc/main.tf")
	block := guideBlock(t, onboardingGuide, `resource "azapi_resource"`)
	attributes := regexp.MustCompile(`(?m)^  (for_each +=.*|body +=.*)$`).FindAllString(block, -1)
	if len(attributes) != 2 {
		t.Fatalf("the guide has %s", block)
	}
	for name, tool := range acceptanceTools(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkdir(
				t,
				tool,
				map[string]string{
					"main.tf": arc + fmt.Sprintf(
						"\nresource \"terraform_data\" \"flux\" {\n%s\n%s\n}\n",
						attributes[0],
						strings.Replace(attributes[1], "body ", "input", 1),
					),
				},
			)
			plan := w.plan()
			for _, cluster := range []string{"berlin", "lyon"} {
				input := fieldText(resourceChange(t, plan, fmt.Sprintf("terraform_data.flux[%q]", cluster)).After, "input")
				for _, want := range []string{"path:./clusters/" + cluster + " ", "path:./factory ", "flotilla-cluster:", "flotilla-cluster-type:", "sourceKind:GitRepository"} {
					if !strings.Contains(input, want) {
						t.Errorf("cluster %s gets %s, without %s", cluster, input, want)
					}
				}
			}
		})
	}
}
