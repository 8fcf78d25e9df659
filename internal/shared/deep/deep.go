// Package deep walks JSON values: nil, texts, bools, numbers, []any and map[string]any.
package deep

// Holds reports whether is returns true for any part of a value.
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

// Mapped returns a copy of a value after replacing each part except lists and objects.
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

// Copy returns a deep copy of a value.
func Copy(value any) any { return Mapped(value, func(part any) any { return part }) }

// Without returns a copy of a value without the members of objects that drop reports.
func Without(value any, drop func(name string, member any) bool) any {
	switch value := value.(type) {
	case []any:
		list := make([]any, len(value))
		for i, element := range value {
			list[i] = Without(element, drop)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(value))
		for name, member := range value {
			if !drop(name, member) {
				object[name] = Without(member, drop)
			}
		}
		return object
	}
	return value
}
