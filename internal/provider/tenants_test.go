package provider_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/terraform"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/gittest"
)

// tenantConfig is the format of a fleet with one workload of a team. Its arguments are further attributes of the workspace, the
// reconciler, further attributes of the deployment target, its manifests, and the URL of the repository.
const tenantConfig = `
locals {
  fleet = provider::flotilla::fleet({
    environment   = "dev"
    workspaces    = [{ name = "team", %s }, { name = "other", secrets = ["of-others"] }]
    cluster_types = [{ name = "edge", reconciler = %q }]
    workloads = [{
      name      = "app"
      workspace = "team"
      deployment_targets = {
        live = { environment = "dev", %s manifests = { %s } }
      }
    }]
    target_policies = [{ name = "all", cluster_type_selector = {} }]
  })
}

resource "flotilla_assignment" "dev" {
  name        = "dev"
  fleet       = local.fleet
  gitops_repo = { url = %q, branch = "main" }
}
`

const (
	tenantGit   = `repo = "https://git.example.com/team/app", `
	tenantChart = `storage = "helm", repo = "https://charts.example.com", chart = "app", version = "1.2.3", `
	tenantOCI   = `storage = "oci", repo = "oci://registry.example.com/team/app", tag = "v1", `
	notAllowed  = `which workspace "team" does not allow its workloads`
)

// tenantAttacks are attacks of a team that may only add workloads, with the errors of the plan.
var tenantAttacks = map[string]struct{ workspace, reconciler, target, manifests, want string }{
	"the agent's Git credentials, to a host of the team's own": {
		`service_account = "team"`, "flux", "", `repo = "https://evil.example.com/x", parameters = { secret_ref = "flotilla-repository" }`,
		`manifests.parameters.secret_ref: "flotilla-repository" is an object or a Secret of the agent itself`,
	},
	"the agent's Git credentials, without a service account": {
		"", "flux", "", `repo = "https://evil.example.com/x", parameters = { secret_ref = "flotilla-repository" }`,
		`"flotilla-repository" is an object or a Secret of the agent itself`,
	},
	"the Secret of another team": {
		"",
		"flux",
		"",
		tenantGit + `parameters = { secret_ref = "of-others" }`,
		`"of-others" is a Secret of workspace "other"`,
	},
	"variables from any Secret": {
		`service_account = "team"`, "flux", "", tenantGit + `parameters = { kustomization = { postBuild = { substituteFrom = [{ kind = "Secret", name = "db" }] } } }`,
		`kustomization.postBuild.substituteFrom[0].name: reaches Secrets and ConfigMaps of the agent's namespace, ` + notAllowed + `: add "db" to the secrets of the workspace`,
	},
	"another cluster": {
		`service_account = "team"`, "flux", "", tenantChart + `parameters = { helm_release = { kubeConfig = { secretRef = { name = "hub" } } } }`,
		`helm_release.kubeConfig.secretRef.name: reaches other clusters, ` + notAllowed + `: add "helm_release.kubeConfig.secretRef.name" to the parameters`,
	},
	"values from any Secret": {
		`service_account = "team"`, "flux", "", tenantChart + `parameters = { helm_release = { valuesFrom = [{ kind = "Secret", name = "db" }] } }`,
		`helm_release.valuesFrom[0].name: reaches Secrets`,
	},
	"another account": {
		`service_account = "team"`, "flux", "", tenantGit + `parameters = { git_repository = { serviceAccountName = "admin" } }`,
		`git_repository.serviceAccountName: reaches another account`,
	},
	"clusters of Rancher Fleet": {
		`service_account = "team"`, "fleet", "", tenantGit + `parameters = { git_repo = { targets = [{ clusterSelector = {} }] } }`,
		`git_repo.targets[0].clusterSelector: reaches other clusters`,
	},
	"the labels of a namespace": {
		"", "argocd", "", tenantGit + `parameters = { application = { syncPolicy = { managedNamespaceMetadata = { labels = { workspace = "other" } } } } }`,
		`application.syncPolicy.managedNamespaceMetadata: cannot be set: Flotilla decides the labels and annotations of namespaces`,
	},
	"the labels of a namespace, by Rancher Fleet": {
		"", "fleet", "", tenantChart + `parameters = { helm_op = { namespaceLabels = { workspace = "other" } } }`,
		`helm_op.namespaceLabels: cannot be set: Flotilla decides the labels and annotations of namespaces`,
	},
	"a namespace of others, by kustomize": {
		"", "argocd", "", tenantGit + `parameters = { application = { source = { kustomize = { namespace = "other" } } } }`,
		`application.source.kustomize.namespace: cannot be set`,
	},
	"a plugin": {
		"", "argocd", "", tenantGit + `parameters = { application = { source = { plugin = { name = "x" } } } }`,
		`application.source.plugin.name: reaches programs of the agent`,
	},
	"a namespace of others": {
		`service_account = "team"`, "flux", `namespace = "cert-manager", `, tenantGit,
		`namespace: workspace "team" does not allow its workloads to choose namespaces that do not begin with "team-"`,
	},
	"a source of others": {
		`sources = ["https://git.example.com/team"]`, "flux", "", `repo = "https://git.example.com/team-b/app"`,
		`manifests.repo: is not among the sources of workspace "team"`,
	},
	"no parameters of the cluster type for sources": {
		`service_account = "team"`, "flux", "", tenantGit + `parameters = { git_repository = null }`,
		`manifests.parameters.git_repository: decides which content or which server is trusted, ` + notAllowed + `: leave it to`,
	},
	"the credentials of its source, to hosts of its submodules": {
		`service_account = "team"`, "flux", "", tenantGit + `parameters = { git_repository = { recurseSubmodules = true } }`,
		`git_repository.recurseSubmodules: reaches content that is not in the workload's source`,
	},
	"content of others, by a URL without a scheme": {
		`sources = ["https://git.example.com/team"]`, "argocd", "",
		tenantGit + `parameters = { application = { source = { kustomize = { components = ["GitHub.com/evil/x?ref=main"] } } } }`,
		`application.source.kustomize.components[0]: reaches other sources`,
	},
	"content of others, by a user and a host": {
		`sources = ["https://git.example.com/team"]`, "argocd", "",
		tenantGit + `parameters = { application = { source = { kustomize = { components = ["git@evil.example.com/x"] } } } }`,
		`application.source.kustomize.components[0]: reaches other sources`,
	},
	"a namespace of a team with the same prefix": {
		`service_account = "team" }, { name = "team-ops"`, "flux", `namespace = "team-ops-vault", `, tenantGit,
		`namespace: begins with the name of workspace "team-ops", so that workspace "team" does not allow its workloads to choose it`,
	},
	"every source": {
		`argocd_project = { name = "team", render = true }`, "argocd", "", `repo = "https://git.example.com/*"`, `manifests.repo: has one of *?{}[]`,
	},
	"a Secret of the agent, by a workspace": {
		`secrets = ["flux-system"]`, "flux", "", tenantGit, `workspaces["team"].secrets[0]: "flux-system" is a Secret of the agent itself`,
	},
	"no checks of signatures": {
		"", "flux", "", tenantGit + `parameters = { git_repository = { verify = null } }`,
		`git_repository.verify: decides which content or which server is trusted, ` + notAllowed + `: leave it to the parameters of the cluster type, or add "git_repository.verify" to`,
	},
	"empty checks of signatures": {
		"", "flux", "", tenantGit + `parameters = { git_repository = { verify = {} } }`, `git_repository.verify: decides which content`,
	},
	"keys of its own": {
		`secrets = ["team-keys"]`, "flux", "", tenantGit + `parameters = { git_repository = { verify = { secretRef = { name = "team-keys" } } } }`,
		`git_repository.verify.secretRef.name: decides which content`,
	},
	"signatures of anyone": {
		"", "flux", "", tenantOCI + `parameters = { oci_repository = { verify = { matchOIDCIdentity = [{ issuer = ".*", subject = ".*" }] } } }`,
		`oci_repository.verify.matchOIDCIdentity[0].subject: decides which content`,
	},
	"a registry without encryption": {
		"",
		"flux",
		"",
		tenantOCI + `parameters = { oci_repository = { insecure = true } }`,
		`oci_repository.insecure: decides which content`,
	},
	"certificates of its own": {
		"", "flux", "", tenantChart + `parameters = { helm_repository = { certSecretRef = { name = "mine" } } }`, `helm_repository.certSecretRef.name: decides which content`,
	},
	"a proxy of its own": {
		"", "flux", "", tenantGit + `parameters = { git_repository = { proxySecretRef = { name = "mine" } } }`, `git_repository.proxySecretRef.name: decides which content`,
	},
	"no checks of certificates, by Rancher Fleet": {
		"", "fleet", "", tenantGit + `parameters = { git_repo = { insecureSkipTLSVerify = true } }`, `git_repo.insecureSkipTLSVerify: decides which content`,
	},
	"no checks of certificates, by Config Sync": {
		"", "config-sync", "", tenantGit + `parameters = { root_sync = { git = { noSSLVerify = true } } }`, `root_sync.git.noSSLVerify: decides which content`,
	},
	"an invalid source": {
		`sources = ["https://git.example.com/*"]`, "flux", "", tenantGit, `workspaces["team"].sources[0]: "https://git.example.com/*" is not the beginning of a URL`,
	},
	"an invalid path of a parameter": {
		`parameters = ["helm_relaese.valuesFrom"]`, "flux", "", tenantGit,
		`workspaces["team"].parameters[0]: "helm_relaese.valuesFrom" is not the path of a parameter`,
	},
	"an unknown field": {
		`parameters = ["helm_release.valuesFrm"]`, "flux", "", tenantGit, `is no field of a HelmRelease that Flotilla knows; did you mean "valuesFrom"?`,
	},
	"a field that Flotilla sets": {
		`parameters = ["helm_release.releaseName"]`, "flux", "", tenantGit, `is what Flotilla decides`,
	},
}

func TestTenantsCannotReachObjectsOfOthers(t *testing.T) {
	t.Parallel()
	for name, attack := range tenantAttacks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
				Config:      fmt.Sprintf(tenantConfig, attack.workspace, attack.reconciler, attack.target, attack.manifests, bareRepository(t).url),
				PlanOnly:    true,
				ExpectError: words(attack.want),
			}}})
		})
	}
}

func TestTenantsUseParametersAllowedByTheirWorkspace(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: fmt.Sprintf(
			tenantConfig,
			`service_account = "team", secrets = ["team-charts", "db"], sources = ["https://charts.example.com"], parameters = ["helm_release.kubeConfig"]`,
			"flux",
			`namespace = "team-shop", `,
			tenantChart+
				`parameters = { secret_ref = "team-charts", helm_release = { valuesFrom = [{ kind = "Secret", name = "db" }], kubeConfig = { secretRef = { name = "edge" } } } }`,
			repo.url,
		),
		Check: func(*terraform.State) error {
			text := repo.read(t, "main")["edge/app-live/reconciler.yaml"]
			for _, want := range []string{"name: \"team-charts\"", "valuesFrom:", "kubeConfig:", "serviceAccountName: \"team\""} {
				if !strings.Contains(text, want) {
					return fmt.Errorf("%s is not in\n%s", want, text)
				}
			}
			return nil
		},
	}}})
}

// Parameters of a deployment target do not replace the required signatures of its cluster type. Required signatures that no agent
// checks are an error.
func TestSignaturesRequiredByAClusterTypeStayRequired(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	withParameters := func(reconciler, parameters, manifests string) string {
		config := fmt.Sprintf(tenantConfig, "", reconciler, "", manifests, repo.url)
		return strings.Replace(
			config,
			fmt.Sprintf("reconciler = %q", reconciler),
			fmt.Sprintf("reconciler = %q, parameters = { %s }", reconciler, parameters),
			1,
		)
	}
	const verify = `git_repository = { verify = { mode = "HEAD", secretRef = { name = "platform-keys" } } }`
	steps := []resource.TestStep{{
		Config: withParameters("flux", verify, tenantGit+`parameters = { git_repository = { interval = "9m" } }`),
		Check: func(*terraform.State) error {
			text := repo.read(t, "main")["edge/app-live/reconciler.yaml"]
			for _, want := range []string{"interval: 9m", "  verify:\n    mode: HEAD\n    secretRef:\n      name: platform-keys\n"} {
				if !strings.Contains(text, want) {
					return fmt.Errorf("%s is not in\n%s", want, text)
				}
			}
			return nil
		},
	}, {
		Config: withParameters(
			"flux",
			`oci_repository = { verify = { provider = "cosign" } }`,
			`storage = "helm", repo = "oci://registry.example.com", chart = "app", version = "1.2.3"`,
		),
		PlanOnly: true,
		ExpectError: words(`manifests.repo: the parameters of cluster type "edge" require signatures: with oci_repository.verify, ` +
			`a chart of a registry with storage "helm" would not be verified`),
	}}
	for _, reconciler := range []string{"argocd", "argocd-hub", "fleet", "config-sync", "zarf"} {
		steps = append(steps, resource.TestStep{
			Config: withParameters(reconciler, verify, tenantGit), PlanOnly: true,
			ExpectError: words(`cluster_types["edge"].parameters.git_repository: is for the reconciler "flux"`),
		})
	}
	testSteps(t, resource.TestCase{Steps: steps})
}

func TestTerraformRefusesATenantsAttack(t *testing.T) {
	t.Parallel()
	for _, tool := range acceptanceTools(t) {
		attack := tenantAttacks["the agent's Git credentials, to a host of the team's own"]
		url := filepath.ToSlash(filepath.Join(t.TempDir(), "gitops.git"))
		config := fmt.Sprintf(tenantConfig, attack.workspace, attack.reconciler, attack.target, attack.manifests, url)
		w := newWorkdir(t, tool, map[string]string{"main.tf": requiredProviders + config})
		for _, command := range []string{"plan", "apply"} {
			arguments := []string{command, "-input=false", "-no-color"}
			if command == "apply" {
				arguments = append(arguments, "-auto-approve")
			}
			stdout, stderr, err := w.try(arguments...)
			if err == nil || !words(attack.want).MatchString(stderr) {
				t.Errorf("%s says %s%s, want %s", command, stdout, stderr, strconv.Quote(attack.want))
			}
		}
	}
}

// YAML's merge key is an ordinary key of values, and an error in a config container, because no ConfigMap can have it.
func TestMergeKeysOfYAMLAreText(t *testing.T) {
	t.Parallel()
	repo := bareRepository(t)
	config := fmt.Sprintf(tenantConfig, "", "flux", "", tenantChart+`parameters = { values = { "<<" = { a = "b" }, c = "d" } }`, repo.url)
	testSteps(t, resource.TestCase{Steps: []resource.TestStep{
		{
			Config: strings.Replace(
				config,
				"target_policies",
				`config_containers = [{ name = "theirs", data = { "<<" = "x" } }]`+"\n    target_policies",
				1,
			),
			ExpectError: words(`Config container "theirs": /<< is not a key that a ConfigMap can have`),
		},
		{
			Config: config,
			Check: func(*terraform.State) error {
				if text := repo.read(t, "main")["edge/app-live/reconciler.yaml"]; !strings.Contains(text, "\n    \"<<\":\n        a: b\n") {
					return fmt.Errorf("the values are\n%s", text)
				}
				return nil
			},
		},
	}})
}

// A team chooses the names of its deployment targets, and could take over objects of another team with one.
func TestObjectsOfTwoTeamsWithOneNameAreAnErrorThatNamesBoth(t *testing.T) {
	t.Parallel()
	sum := sha256.Sum256([]byte("dev-edge-apps/pay-live"))
	hash := hex.EncodeToString(sum[:4])
	config := fmt.Sprintf(tenantConfig, "", "flux", `namespace = "dev-edge-apps",`, tenantGit, bareRepository(t).url)
	config = strings.Replace(config, `name      = "app"`, `name      = "pay"`, 1)
	config = strings.Replace(config, "    workloads = [{", fmt.Sprintf(`    workloads = [{
      name = "apps-pay-live", workspace = "other"
      deployment_targets = { %q = { environment = "dev", manifests = { repo = "https://evil.example.com/x" } } }
    }, {`, hash), 1)
	testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: config, PlanOnly: true,
		ExpectError: words(`would be called "dev-edge-apps-pay-live-` + hash + `", as those of deployment target`),
	}, {
		Config: strings.Replace(config, strconv.Quote(hash)+" = {", strconv.Quote(hash)+` = { namespace = "dev-edge-apps",`, 1), PlanOnly: true,
		ExpectError: words(
			`namespace "dev-edge-apps" is shared with deployment target "apps-pay-live-` + hash + `" of workspace "other": a namespace belongs to one workspace`,
		),
	}}})
}

// A hub has the objects of all clusters, so a team could choose names of another team's Applications or project.
func TestObjectsOfTwoTeamsOnAHubWithOneNameAreAnErrorThatNamesBoth(t *testing.T) {
	t.Parallel()
	hub := fmt.Sprintf(tenantConfig, "", "argocd-hub", "", tenantGit, bareRepository(t).url)
	theirs := func(workload string) string {
		return strings.Replace(
			hub,
			"    workloads = [{",
			fmt.Sprintf(`    clusters  = [{ name = "1", cluster_type = "edge" }, { name = "east-1", cluster_type = "edge" }]
    workloads = [{
      name = %q, workspace = "other"
      deployment_targets = { east = { environment = "dev", manifests = { repo = "https://evil.example.com/x" } } }
    }, {`, workload),
			1,
		)
	}
	testSteps(t, resource.TestCase{Steps: []resource.TestStep{
		{Config: theirs("app-dead"), PlanOnly: true, ExpectNonEmptyPlan: true},
		{
			Config: theirs("app-live"), PlanOnly: true,
			ExpectError: words(
				`its Application for cluster "east-1" would be called "dev-edge-app-live-east-1", as that of deployment target "app-live-east" of workspace "other" for cluster "1"`,
			),
		},
	}})
	project := fmt.Sprintf(tenantConfig, `argocd_project = { name = "pay", render = true }`, "argocd-hub", "", tenantGit, bareRepository(t).url)
	project = strings.Replace(project, `secrets = ["of-others"]`, `argocd_project = { name = "pay-dev", render = true }`, 1)
	project = strings.Replace(project, `[{ name = "edge",`, `[{ name = "edge", reconciler = "argocd-hub" }, { name = "dev-edge",`, 1)
	project = strings.Replace(project, "    workloads = [{", `    workloads = [{
      name = "b", workspace = "other"
      deployment_targets = { live = { environment = "dev", manifests = { repo = "https://git.example.com/other/b" } } }
    }, {`, 1)
	testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
		Config: project, PlanOnly: true,
		ExpectError: words(`on "edge" it would be called "pay-dev-dev-edge", as that of workspace "team" on "dev-edge"`),
	}}})
}

// A hostile repository may have trees that git never writes: paths of gigabytes from a few objects, and names that leave the folder.
func TestFilesOfAHostileRepositoryAreErrors(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	git(t, "", "init", "--quiet", "--bare", "--initial-branch=main", folder)
	feed := func(text string, arguments ...string) string {
		return strings.TrimSpace(gittest.Feed(t, folder, []byte(text), arguments...))
	}
	file := feed("a: b\n", "hash-object", "-w", "--stdin")
	raw, err := hex.DecodeString(file)
	if err != nil {
		t.Fatal(err)
	}
	long := feed("100644 blob "+file+"\ta.yaml\n", "mktree")
	for range 3 {
		long = feed(fmt.Sprintf("040000 tree %s\t%s\n", long, strings.Repeat("a", 4_000)), "mktree")
	}
	writeTree := func(content string) string {
		return feed(content, "hash-object", "-t", "tree", "--literally", "-w", "--stdin")
	}
	entry := func(name string) string { return name + "\x00" + string(raw) }
	for tree, want := range map[string]string{
		long:                                     "Paths are too long",
		writeTree(entry("100644 a\x1b[2J.yaml")): `Names cannot be paths`,
		writeTree(entry("100644 \u009b2J\u202e.yaml")):                                                 `"\u009b2J\u202e.yaml"`,
		feed("100644 ..\x00"+string(raw), "hash-object", "-t", "tree", "--literally", "-w", "--stdin"): "malformed",
	} {
		git(t, folder, "update-ref", "refs/heads/main", feed("", "commit-tree", "-m", "ill", tree))
		testSteps(t, resource.TestCase{Steps: []resource.TestStep{{
			Config:      fmt.Sprintf("data \"flotilla_repository_files\" \"x\" {\n  url = %q\n}\n", filepath.ToSlash(folder)),
			ExpectError: words(want),
		}}})
	}
}

// Templates and rules are bounded in steps and size, not in time, so their result does not depend on the machine.
func TestEndlessTemplatesAndRulesAreErrorsOfThePlan(t *testing.T) {
	t.Parallel()
	config := fmt.Sprintf(tenantConfig, "", "flux", "", tenantGit, bareRepository(t).url)
	template := func(text string) string {
		return strings.Replace(
			strings.Replace(config, `reconciler = "flux"`, `reconciler = "ill"`, 1),
			"    target_policies",
			fmt.Sprintf(
				"    templates = [{ name = \"ill\", type = \"reconciler\", content_type = \"text\", manifests = [%q] }]\n    target_policies",
				text,
			),
			1,
		)
	}
	rule := func(expression string) string {
		return strings.Replace(
			config,
			"    target_policies",
			fmt.Sprintf("    constraints = [{ name = \"ill\", expression = %q }]\n    target_policies", expression),
			1,
		)
	}
	hundred := "[" + strings.Repeat("1,", 99) + "1]"
	for text, want := range map[string]string{
		template(`{{ range 1000000000000 }}{{ end }}`):                                  "loops and calls of templates take more than 100000 steps",
		template(`{{ repeat 2000000000 "x" }}`):                                         "a text is larger than 1 MiB",
		template(`{{ $x := repeat 1000000 "a" }}{{ range until 10 }}{{ $x }}{{ end }}`): "writes more than 4 MiB into one file",
		template(`{{ env "HOME" }}`):                                                    `function "env" is not for templates: it reads the environment of the machine`,
		rule(strings.Repeat(hundred+".all(x, ", 6) + "true" + strings.Repeat(")", 6)):   "takes too long: one evaluation costs more than 200000",
	} {
		testSteps(t, resource.TestCase{Steps: []resource.TestStep{{Config: text, PlanOnly: true, ExpectError: words(want)}}})
	}
}
