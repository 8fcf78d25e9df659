# The import ID is the JSON of the object.
terraform import flotilla_constraint.no_latest '{"name":"no-latest","expression":"!has(target.manifests.tag) || target.manifests.tag != \"latest\""}'
