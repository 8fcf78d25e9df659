package gitops

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

const (
	maxRecordDepth = 32
	// leastObject and leastValue are the smallest sizes in bytes that Flotilla writes. Records with smaller values take
	// many times their size in memory.
	leastObject, leastValue = 16, 4
)

const (
	// maxRecords bounds the bytes of assignment records in one read: enough for 600,000 folders.
	maxRecords = 256 << 20
	// maxClaims bounds the bytes of claim records at a path: enough for 300,000 clusters.
	maxClaims = 32 << 20
	// maxVisited bounds one inventory: enough for ten fleets of 3,000 clusters.
	maxVisited = 500_000
)

// budget bounds the cost of one read. Git stores equal content once, so a push of a few kilobytes can contain billions of
// files.
type budget struct {
	left    int
	problem string
}

func recordBudget() *budget {
	return &budget{maxRecords, fmt.Sprintf("the records of assignments have more than %d MiB together", maxRecords>>20)}
}

func claimBudget(at string) *budget {
	return &budget{maxClaims, fmt.Sprintf("the records of claims in %q have more than %d MiB together", claimsPath(at), maxClaims>>20)}
}

func visitBudget(begin string) *budget {
	return &budget{
		maxVisited,
		fmt.Sprintf("%q has more than %d folders and records up to %d levels below it", begin, maxVisited, InventoryLevels),
	}
}

func (b *budget) spend(amount int) error {
	if b.left -= amount; b.left < 0 {
		return newCompleteError(errors.New(b.problem + ", which Flotilla does not write: find the commit that added them, and revert it"))
	}
	return nil
}

// checkBounds rejects content that Flotilla never writes, before it is parsed. It allocates nothing.
func checkBounds(content []byte, limit int) error {
	if len(content) > limit {
		return fmt.Errorf("the record is longer than %d MiB", limit>>20)
	}
	if !utf8.Valid(content) {
		return errors.New("the record is not valid UTF-8")
	}
	depth, objects, values, inText := 0, 0, 0, false
	for i := 0; i < len(content); i++ {
		switch c := content[i]; {
		case inText && c == '\\':
			i++
		case c == '"':
			inText = !inText
		case inText:
		case c == '{' || c == '[':
			if depth++; depth > maxRecordDepth {
				return fmt.Errorf("the record has more than %d levels", maxRecordDepth)
			}
			objects++
		case c == '}' || c == ']':
			depth--
		case c == ',':
			values++
		}
	}
	if objects > 32+len(content)/leastObject || values > 32+len(content)/leastValue {
		return errors.New("the record has more values than any that Flotilla writes")
	}
	return nil
}

func (f folderRecord) listTexts() []string {
	texts := append([]string{f.Workload, f.Workspace, f.DeploymentTarget, f.ClusterType, f.ConfigVersion, f.OwnerLabel}, f.Policies...)
	for _, object := range f.Objects {
		texts = append(texts, object.Kind, object.Namespace, object.Name)
	}
	return append(append(texts, f.Manifests.Texts()...), string(f.Source))
}
