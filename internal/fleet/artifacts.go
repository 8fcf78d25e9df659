package fleet

// DecodeWorkloads reads workloads as fleet() takes them, with the deployment targets of one environment, or with all where
// that is "". known is false while some of it is not known yet.
func DecodeWorkloads(workloads any, environment string) (decoded []Workload, known bool, findings Findings) {
	d := newDecoder()
	d.Fleet.Environment, d.EnvironmentKnown = environment, environment != ""
	root := &Object{reader: &d.Reader, table: &fleetTable, fields: map[string]any{"workloads": workloads}}
	d.collection(root, "workloads", d.workload)
	return d.Fleet.Workloads, IsKnown(workloads), d.Findings
}
