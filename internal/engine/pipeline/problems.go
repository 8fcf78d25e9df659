package pipeline

import (
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Problems are what is wrong with the files of assignments, each once however many of them have it. The zero value has none.
type Problems struct {
	wording.Groups[string, *schedule.Assignment]
}

// Add adds what is wrong with an assignment.
func (p *Problems) Add(assignment *schedule.Assignment, texts ...string) {
	for _, text := range texts {
		p.Groups.Add(text, assignment)
	}
}

// Messages are the problems in the order in which they were added, each a sentence without a full stop that names the first
// assignment.
func (p *Problems) Messages() []string {
	var messages []string
	for text, assignments := range p.All() {
		more := ""
		if others := len(assignments) - 1; others > 0 {
			more = fmt.Sprintf(" and %d more", others)
		}
		messages = append(messages, fmt.Sprintf("%s (assignment %q%s)", text, assignments[0].Key(), more))
	}
	return messages
}
