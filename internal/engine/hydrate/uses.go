package hydrate

import (
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// Uses returns the keys of assignments with a value at the JSON pointer (RFC 6901), in order. Known containers of
// unknown snapshots count.
func Uses(result *Snapshots, assignments []*schedule.Assignment, pointer string) ([]string, error) {
	if err := checkPointer(pointer); err != nil {
		return nil, err
	}
	using := []string{}
	verdicts := map[*Snapshot]bool{}
	for i, assignment := range assignments {
		snapshot := result.All[i]
		has, known := verdicts[snapshot]
		if !known {
			has = snapshot.has(pointer)
			verdicts[snapshot] = has
		}
		if has {
			using = append(using, assignment.Key())
		}
	}
	return using, nil
}

func (s *Snapshot) has(pointer string) bool {
	if s.Known {
		key, rest, nested := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
		for _, field := range s.fields {
			if pointer != "" && escapePointer(s.mergeIndex.keys[field.key]) != key {
				continue
			}
			if pointer == "" || !nested {
				return true
			}
			_, has := LookUp(field.value.clean, "/"+rest)
			return has
		}
		return false
	}
	for _, member := range s.members {
		if value, has := LookUp(s.mergeIndex.containers[member].data, pointer); has && value != nil {
			return true
		}
	}
	return false
}

func checkPointer(pointer string) error {
	if pointer != "" && !strings.HasPrefix(pointer, "/") {
		return fmt.Errorf("%q is not a JSON pointer: it does not begin with a slash, as in \"/DATABASE_URL\"", pointer)
	}
	for i := range len(pointer) {
		if pointer[i] == '~' && (i+1 == len(pointer) || (pointer[i+1] != '0' && pointer[i+1] != '1')) {
			return fmt.Errorf("%q is not a JSON pointer: a tilde in a key is written ~0", pointer)
		}
	}
	return nil
}
