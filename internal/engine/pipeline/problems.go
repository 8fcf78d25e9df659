package pipeline

import (
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Problems groups problems with rendered files by text. The zero value is empty.
type Problems struct {
	wording.Groups[string, *schedule.Assignment]
}

// Add adds problems of an assignment.
func (p *Problems) Add(assignment *schedule.Assignment, texts ...string) {
	for _, text := range texts {
		p.Groups.Add(text, assignment)
	}
}

// Messages returns the problems in order of addition, as sentences without a full stop that name the first assignment.
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
