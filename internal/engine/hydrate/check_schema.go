package hydrate

// CheckSchema returns a clause about an unusable JSON Schema, or nil.
func CheckSchema(text string) error {
	_, err := readSchema(text)
	return err
}
