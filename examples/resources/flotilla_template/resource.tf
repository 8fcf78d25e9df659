# Replaces the built-in template of this type and name.
resource "flotilla_template" "namespace" {
  name = "default"
  type = "namespace"
  manifests = [<<-EOT
    apiVersion: v1
    kind: Namespace
    metadata:
      name: {{ .Namespace }}
      labels:
        environment: {{ .Environment | quote }}
        team: {{ .Workspace | quote }}
    EOT
  ]
}
