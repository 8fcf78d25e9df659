terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

# The texts of a folder of YAML files would be
# { for name in fileset("control-plane", "**/*.yaml") : name => file("control-plane/${name}") }
output "fleet" {
  value = provider::flotilla::control_plane("dev", [<<-YAML
    apiVersion: scheduler.kalypso.io/v1alpha1
    kind: ClusterType
    metadata:
      name: drone
      labels:
        edge: "true"
    spec:
      reconciler: flux
      namespaceService: default
      configType: configmap
    ---
    apiVersion: v1
    kind: ConfigMap
    metadata:
      name: drone-config
      labels:
        platform-config: "true"
        cluster-type: drone
    data:
      CLUSTER_NAME: Drone
    YAML
  ])
}
