package reconciler

// zarf deploys packages. It has no objects on a cluster that would say what runs.
var zarf = Reconciler{Name: "zarf", Product: "Zarf", Reserved: []string{"zarf"}}
