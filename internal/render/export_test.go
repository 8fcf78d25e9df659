package render

// SpecFields are the fields that are known of the spec of a kind.
func SpecFields(kind string) []string { return specFields[kind] }
