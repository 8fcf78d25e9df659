# The import ID is "<url>#<branch>:<path>:<name>"; the path of the repository's root is empty.
terraform import flotilla_assignment.dev 'https://git.example.com/platform/gitops.git#dev:clusters:dev'
