# The import ID is "<url>#<branch>:<path>:<name>"; the path of the repository's root is empty.
terraform import flotilla_cluster_claim.payments 'https://git.example.com/platform/gitops.git#prod::payments'
