package hydrate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

func (c *container) readFiles(texts []string) error {
	for i, text := range texts {
		file, err := fleet.ParseEncrypted(text)
		if err != nil {
			return fmt.Errorf("config container %q: encrypted[%d] %w", c.name, i, err)
		}
		if c.fileOf(file.Name) >= 0 {
			return fmt.Errorf("config container %q: encrypted[%d] is of a Secret of which there is another file", c.name, i)
		}
		file.Container, file.Index = c.name, i
		c.files = append(c.files, file)
	}
	return nil
}

func (c *container) fileOf(secret string) int {
	return slices.IndexFunc(c.files, func(file encrypted.File) bool { return file.Name == secret })
}

// filesOf returns the encrypted files by Secret, of which the last wins, and ambiguities.
func (e *mergeIndex) filesOf(members []int32) ([]encrypted.File, []ambiguity) {
	given := map[string][]int{}
	for _, member := range members {
		for i := range e.containers[member].files {
			name := e.containers[member].files[i].Name
			given[name] = append(given[name], int(member))
		}
	}
	var files []encrypted.File
	var found []ambiguity
	for name, containers := range given {
		fileOf := func(container int) encrypted.File {
			one := &e.containers[container]
			return one.files[one.fileOf(name)]
		}
		last := fileOf(containers[len(containers)-1])
		files = append(files, last)
		if e.ranks == nil {
			continue
		}
		rank := e.ranks[containers[len(containers)-1]]
		equal := slices.DeleteFunc(containers, func(container int) bool { return e.ranks[container] != rank })
		if slices.ContainsFunc(equal, func(container int) bool { return fileOf(container).Text != last.Text }) {
			found = append(found, ambiguity{secret: name, containers: equal})
		}
	}
	slices.SortFunc(files, func(a, b encrypted.File) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(found, func(a, b ambiguity) int { return strings.Compare(a.secret, b.secret) })
	return files, found
}
