package hydrate

// CheckSchema says what is wrong with the text of a JSON Schema, as a clause without its subject; nil
// where it can be used. Nothing is fetched for it.
func CheckSchema(text string) error {
	_, err := readSchema(text)
	return err
}
