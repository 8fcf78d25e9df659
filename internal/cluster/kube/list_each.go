package kube

import (
	"context"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// slowAnswer is how long a cluster may take for one question before it is asked all others at the same time.
const slowAnswer = 500 * time.Millisecond

// Listing is what a cluster answers about one kind.
type Listing struct {
	List
	Err error
}

// ListEach lists objects of several kinds, as [InTurn] does. There is a listing for each kind, in their order; but the list
// ends with the first error that is not ReasonForbidden.
func (c *Client) ListEach(ctx context.Context, kinds []Kind, options ListOptions) []Listing {
	all := make([]Listing, len(kinds))
	answered := InTurn(len(kinds), func(i int) error {
		all[i].List, all[i].Err = c.List(ctx, kinds[i], options)
		return all[i].Err
	})
	return all[:answered]
}

// InTurn asks a cluster so many questions, one after the other, over one connection, since a connection costs more than most
// answers. Where the cluster takes long for one, it is asked all others at the same time: ask must bear that. It returns how
// many are answered, up to and with the first error that is not ReasonForbidden, since the cluster would not answer the others
// either.
func InTurn(questions int, ask func(i int) error) (answered int) {
	errs := make([]error, questions)
	for i := range questions {
		done := make(chan struct{})
		go func() {
			defer close(done)
			errs[i] = ask(i)
		}()
		timer := time.NewTimer(slowAnswer)
		select {
		case <-done:
			timer.Stop()
			if isLost(errs[i]) {
				return i + 1
			}
			continue
		case <-timer.C:
		}
		rest := i + 1
		parallel.EachAtMost(questions-rest, questions, func(n int) { errs[rest+n] = ask(rest + n) })
		<-done
		for ; i < questions; i++ {
			if isLost(errs[i]) {
				return i + 1
			}
		}
		break
	}
	return questions
}

// isLost says whether the cluster has not answered.
func isLost(err error) bool { return err != nil && ReasonOf(err) != ReasonForbidden }
