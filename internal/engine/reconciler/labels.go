package reconciler

// Labels of objects that Flotilla creates. Package render shortens the names in their values.
const (
	LabelPrefix      = "flotilla.dev/"
	OwnerLabel       = LabelPrefix + "owner"
	HostLabel        = LabelPrefix + "host"
	ClusterLabel     = LabelPrefix + "cluster"
	TypeLabel        = LabelPrefix + "cluster-type"
	EnvironmentLabel = LabelPrefix + "environment"
	AgentLabel       = LabelPrefix + "agent" // on a hub's Secrets of clusters that have one

	ManagedLabel = "app.kubernetes.io/managed-by"
	ManagedBy    = "flotilla" // the value of ManagedLabel
)
