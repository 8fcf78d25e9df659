package pipeline

import (
	"fmt"

	"github.com/flotilla/terraform-provider-flotilla/internal/schedule"
)

// Problems are what is wrong with the files of assignments, each once however many of them have it. The zero value has none.
type Problems struct {
	texts []string
	of    map[string]*problemOf
}

type problemOf struct {
	assignment string // the first
	more       int
}

// Add adds what is wrong with an assignment.
func (p *Problems) Add(assignment *schedule.Assignment, texts ...string) {
	for _, text := range texts {
		if known := p.of[text]; known != nil {
			known.more++
			continue
		}
		if p.of == nil {
			p.of = map[string]*problemOf{}
		}
		p.texts, p.of[text] = append(p.texts, text), &problemOf{assignment: assignment.Key()}
	}
}

// Messages are the problems in the order in which they were added, each a sentence without a full stop that names the first
// assignment.
func (p *Problems) Messages() []string {
	messages := make([]string, len(p.texts))
	for i, text := range p.texts {
		more := ""
		if others := p.of[text].more; others > 0 {
			more = fmt.Sprintf(" and %d more", others)
		}
		messages[i] = fmt.Sprintf("%s (assignment %q%s)", text, p.of[text].assignment, more)
	}
	return messages
}
