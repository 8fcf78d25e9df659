package stateonly

// Cluster returns the resource.
var Cluster = newResource(Object{Name: "cluster", collection: "clusters", Schema: kind("clusters", ofOneEnvironment)})
