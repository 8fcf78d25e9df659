package folder

// Record is what a GitOps repository keeps of a folder: why it is there, and what is in it.
type Record struct {
	Workload string `json:"workload"`
	// Workspace owns the workload.
	Workspace        string `json:"workspace,omitempty"`
	DeploymentTarget string `json:"deployment_target"`
	// ClusterType is the cluster type of a host that is a cluster; "" on others.
	ClusterType   string   `json:"cluster_type,omitempty"`
	Policies      []string `json:"policies,omitempty"`
	ConfigVersion string   `json:"config_version,omitempty"`
	// OwnerLabel is the owner's name in the labels of what is rendered, where that
	// is another one than its own: the name under which it was written first.
	OwnerLabel string `json:"owner_label,omitempty"`
	// Objects are the reconciler objects in the folder.
	Objects []Object `json:"objects,omitempty"`
}

// Object names an object of Kubernetes; of all clusters, without a namespace.
type Object struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}
