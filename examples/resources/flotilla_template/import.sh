# The import ID is the JSON of the object.
terraform import flotilla_template.namespace '{"name":"default","type":"namespace","manifests":["apiVersion: v1\nkind: Namespace\nmetadata:\n  name: {{ .Namespace }}\n"]}'
