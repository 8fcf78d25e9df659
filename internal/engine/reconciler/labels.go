package reconciler

// The labels of the objects that Flotilla makes. Those that name something have the name in the form that package render
// gives names in labels.
const (
	LabelPrefix      = "flotilla.dev/"
	OwnerLabel       = LabelPrefix + "owner"
	HostLabel        = LabelPrefix + "host"
	ClusterLabel     = LabelPrefix + "cluster"
	TypeLabel        = LabelPrefix + "cluster-type"
	EnvironmentLabel = LabelPrefix + "environment"

	ManagedLabel = "app.kubernetes.io/managed-by"
	ManagedBy    = "flotilla" // its value
)
