# The import ID is the JSON of the object.
terraform import flotilla_workspace.kaizen '{"name":"kaizen-app-team","contributor_groups":["kaizen-developers"]}'
