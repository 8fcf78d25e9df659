// Package deep goes through values as JSON has them: nil, texts, bools, numbers, []any and map[string]any.
package deep

// Holds says whether a value, or anything in it at any depth, is so.
func Holds(value any, is func(part any) bool) bool {
	if is(value) {
		return true
	}
	switch value := value.(type) {
	case []any:
		for _, element := range value {
			if Holds(element, is) {
				return true
			}
		}
	case map[string]any:
		for _, member := range value {
			if Holds(member, is) {
				return true
			}
		}
	}
	return false
}

// Mapped is a copy of a value in which each part that is neither a list nor an object is replaced.
func Mapped(value any, replace func(part any) any) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = Mapped(element, replace)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for key, element := range value {
			object[key] = Mapped(element, replace)
		}
		return object
	}
	return replace(value)
}

// Copy is a copy of a value that shares nothing with it.
func Copy(value any) any { return Mapped(value, func(part any) any { return part }) }
