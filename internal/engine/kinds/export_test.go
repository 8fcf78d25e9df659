package kinds

// Forget forgets all verdicts about objects of the kind of an object.
func Forget(c *Catalog, object map[string]any) {
	of, _ := c.kindOf(object)
	if of != nil {
		clear(of.known)
	}
}
