package kinds

// Forget removes the remembered verdicts about an object's kind.
func Forget(c *Catalog, object map[string]any) {
	kind, _ := c.kindOf(object)
	if kind != nil {
		clear(kind.known)
	}
}
