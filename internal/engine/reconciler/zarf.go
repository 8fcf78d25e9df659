package reconciler

// zarf deploys packages. No object on a cluster reports the running content.
var zarf = Reconciler{
	Name: "zarf", Product: "Zarf", Reserved: []string{"zarf"}, NoSecretValues: "the values of a Zarf package are given when it is deployed",
	NoSOPS:    "Zarf decrypts nothing",
	NoObjects: noObjects,
	Unordered: func(Manifests, Manifests, bool) string { return "a Zarf package is deployed by hand" },
}
