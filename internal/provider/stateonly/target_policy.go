package stateonly

// TargetPolicy returns the resource.
var TargetPolicy = newResource(Object{Name: "target_policy", collection: "target_policies", Schema: kind("target_policies", ofOneEnvironment)})
