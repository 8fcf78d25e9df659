resource "flotilla_constraint" "no_latest" {
  name       = "no-latest"
  match      = { workspace = "kaizen-app-team" }
  expression = "!has(target.manifests.tag) || target.manifests.tag != 'latest'"
  message    = "The tag latest is another image tomorrow: give a version."
}

resource "flotilla_constraint" "labelled_namespaces" {
  name               = "labelled-namespaces"
  environment        = "dev"
  match              = { kinds = ["Namespace"] }
  expression         = "has(object.metadata.labels) && 'workspace' in object.metadata.labels"
  message_expression = "'namespace ' + object.metadata.name + ' has no label workspace'"
  mode               = "inform"
}
