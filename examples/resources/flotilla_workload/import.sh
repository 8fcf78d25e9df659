# The import ID is the JSON of the object.
terraform import flotilla_workload.hello_world '{"name":"hello-world-app","workspace":"kaizen-app-team","deployment_targets":{"uat-test":{"environment":"stage","manifests":{"repo":"https://github.com/microsoft/kalypso-app-gitops","branch":"stage"}}}}'
