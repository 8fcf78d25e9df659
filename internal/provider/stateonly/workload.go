package stateonly

// Workload returns the resource.
var Workload = newResource(Object{Name: "workload", collection: "workloads", Schema: kind("workloads", nil)})
