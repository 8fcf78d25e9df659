package stateonly

// Workspace returns the resource.
var Workspace = newResource(Object{Name: "workspace", collection: "workspaces", Schema: kind("workspaces", nil)})
