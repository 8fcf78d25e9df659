# The import ID is the JSON of the object.
terraform import flotilla_environment.dev '{"name":"dev","gitops_repo":{"url":"https://git.example.com/platform/gitops.git","branch":"dev"}}'
