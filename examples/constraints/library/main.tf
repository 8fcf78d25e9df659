# A library of rules for a fleet, and a fleet that keeps all of them but one that informs.

terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

locals {
  environment = "prod"

  constraints = [
    # What is deployed
    {
      name       = "no-mutable-refs"
      expression = "target.manifests.storage == 'git' ? target.manifests.tag != '' || target.manifests.commit != '' : !(target.manifests.tag in ['latest', 'stable', 'main'])"
      message    = "A branch, or a tag such as latest, is another version tomorrow: give a tag or a commit."
    },
    {
      name               = "charts-have-versions"
      expression         = "target.manifests.storage != 'helm' || isSemver(target.manifests.version)"
      message_expression = "'the chart ' + target.manifests.chart + ' has no exact version'"
    },
    {
      name       = "allowed-repositories"
      expression = "['https://git.example.com/', 'https://charts.example.com/', 'oci://registry.example.com/'].exists(allowed, target.manifests.repo.startsWith(allowed))"
      message    = "Manifests come from git.example.com, charts.example.com or registry.example.com."
    },
    {
      name       = "names"
      expression = "target.workload.matches('^[a-z][a-z0-9-]{2,29}$') && !target.workload.endsWith('-' + environment)"
      message    = "A workload has a name of 3 to 30 characters, without the environment in it."
    },

    # Where it is
    {
      name               = "two-regions"
      match              = { deployment_target_selector = { match_labels = { tier = "critical" } } }
      expression         = "sets.contains(target.hosts.map(h, h.labels[?'region'].orValue('')), ['east', 'west'])"
      message_expression = "target.name + ' is on ' + target.hosts.map(h, h.name).join(', ') + ' alone'"
    },
    {
      name       = "hosts-have-regions"
      expression = "'region' in host.labels"
      message    = "A host says in which region it is: label it with region."
    },
    {
      name       = "not-too-many-on-a-host"
      expression = "size(host.targets) <= 200"
      mode       = "inform"
    },

    # Whose it is
    {
      name       = "quotas"
      expression = "size(workspace.contributor_groups) == 0 || 'limits.cpu' in workspace.resource_quota"
      message    = "A workspace with contributors has a quota of limits.cpu."
    },
    {
      name       = "quotas-are-bounded"
      expression = "!('limits.cpu' in workspace.resource_quota) || quantity(workspace.resource_quota['limits.cpu']).compareTo(quantity('64')) <= 0"
      message    = "More than 64 processors are for the platform team to give."
    },
    {
      name       = "isolated"
      expression = "workspace.network_policy == 'isolated'"
      message    = "Workspaces do not reach each other's namespaces."
      mode       = "inform"
    },

    # With which values
    {
      name               = "no-secrets"
      expression         = "config.all(key, !key.matches('(?i)(password|secret|token|api_?key)'))"
      message_expression = "'a key smells of a secret: ' + config.map(key, key).filter(key, key.matches('(?i)(password|secret|token|api_?key)')).join(', ')"
    },
    {
      name       = "log-levels"
      expression = "!has(config.LOG_LEVEL) || config.LOG_LEVEL in ['info', 'warn', 'error']"
      message    = "LOG_LEVEL is info, warn or error in prod."
    },

    {
      name       = "no-hosts-of-dev"
      expression = "config.all(key, type(config[key]) != string || !config[key].contains('.dev.'))"
      message    = "Values of prod name no hosts of dev."
    },

    # What is rendered
    {
      name       = "unhurried"
      match      = { kinds = ["Kustomization", "HelmRelease", "GitRepository"] }
      expression = "!has(object.spec.interval) || duration(object.spec.interval) >= duration('1m')"
      message    = "Reconciling more often than once a minute is hard on the Git host."
    },
    {
      name       = "namespaces-tell-their-workspace"
      match      = { kinds = ["Namespace"] }
      expression = "has(object.metadata.labels) && object.metadata.labels.exists(key, object.metadata.labels[key] == target.workspace)"
    },

    # Final objects: rendered charts and kustomizations, and what templates of one's own write
    {
      name               = "limits"
      expression         = "containers.all(c, c.?resources.?limits.?memory.hasValue())"
      message_expression = "'no limit of memory: ' + containers.filter(c, !c.?resources.?limits.?memory.hasValue()).map(c, c.name).join(', ')"
    },
    {
      # Kubernetes' Pod Security Standard "baseline": not privileged, and apart from the machine.
      name               = "pod-security"
      expression         = "pods.all(p, size(p.baseline) == 0)"
      message_expression = "pods.map(p, p.baseline).flatten().distinct().join('; ')"
    },
    {
      name       = "replicas"
      match      = { kinds = ["apps/Deployment"] }
      expression = "object.spec.?replicas.orValue(1) >= 2"
      message    = "One replica alone is down whenever its machine is."
    },
    {
      name       = "no-load-balancers-on-edge"
      match      = { kinds = ["v1/Service"], cluster_type_selector = { match_labels = { edge = "true" } } }
      expression = "object.spec.?type.orValue('ClusterIP') != 'LoadBalancer'"
      message    = "There is nobody on the edge who gives out load balancers."
    },
  ]

  fleet = provider::flotilla::fleet({
    environment = local.environment
    constraints = local.constraints

    workspaces = [
      { name = "shop", contributor_groups = ["shop-developers"], resource_quota = { "limits.cpu" = "16" }, network_policy = "isolated" },
      { name = "platform", resource_quota = { "limits.cpu" = "64" } },
    ]
    cluster_types = [
      { name = "east", labels = { region = "east" } },
      { name = "west", labels = { region = "west" } },
    ]
    workloads = [
      {
        name      = "till"
        workspace = "shop"
        labels    = { tier = "critical" }
        deployment_targets = {
          live = { environment = "prod", manifests = { repo = "https://git.example.com/shop/till", tag = "v1.4.0", path = "deploy" } }
        }
      },
      {
        name      = "metrics"
        workspace = "platform"
        deployment_targets = {
          all = { environment = "prod", manifests = { storage = "helm", repo = "https://charts.example.com/stable", chart = "metrics", version = "4.2.1" } }
        }
      },
    ]
    target_policies   = [{ name = "everywhere", cluster_type_selector = {} }]
    config_containers = [{ name = "all", data = { LOG_LEVEL = "info", REPLICAS = 3 } }]
  })
}

resource "flotilla_assignment" "prod" {
  name        = "prod"
  fleet       = local.fleet
  gitops_repo = { url = "gitops.git", branch = "prod" }
}

# The results as data: contents is there for rules about values and documents.
data "flotilla_scheduling" "prod" {
  fleet    = local.fleet
  contents = local.fleet
}

output "violations" {
  value = { for name, result in data.flotilla_scheduling.prod.constraints : name => result.violations if length(result.violations) > 0 }
}
