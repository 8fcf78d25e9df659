package stateonly

// ClusterType returns the resource.
var ClusterType = newResource(Object{Name: "cluster_type", collection: "cluster_types", Schema: kind("cluster_types", ofOneEnvironment)})
