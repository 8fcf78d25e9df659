package fleet

// Cluster is one physical cluster of one cluster type.
type Cluster struct {
	Name        string  `json:"name"`
	ClusterType string  `json:"cluster_type"`
	Labels      Labels  `json:"labels,omitempty"`
	Taints      []Taint `json:"taints,omitempty"`
	Description string  `json:"description,omitempty"`
}

var clusterKind = defineKind(Table{
	Name: "cluster",
	Meaning: "One physical cluster of one cluster type, with labels of its own. A target policy with a `cluster_selector` " +
		"assigns to single clusters, whose folders are `clusters/<cluster>`.",
}, func(c *Cluster) []row {
	return []row{
		namedAttribute(&c.Name, labelForm, "Name of the cluster, a DNS label."),
		unstoredAttribute(environmentAttribute),
		textAttribute(&c.ClusterType, Attribute{
			Required: true, Meaning: "Name of its cluster type, whose labels it has too, its own winning.",
		}),
		labelsAttribute(&c.Labels),
		taintsAttribute(&c.Taints),
		textAttribute(&c.Description, descriptionAttribute),
	}
})

func decodeCluster(d *decoder, o *ObjectReader) belonging {
	cluster := clusterKind.decode(o)
	belongs, isCertain := keep(d, o, "clusters", &d.Fleet.Clusters, cluster, cluster.Name)
	if isCertain {
		d.refer(o.At("cluster_type"), "cluster_types", cluster.ClusterType)
	}
	return belongs
}
