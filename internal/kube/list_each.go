package kube

import (
	"context"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/parallel"
)

// slowAnswer is how long a cluster may take for one kind before it is asked for all other kinds at the same time.
const slowAnswer = 500 * time.Millisecond

// Listing is what a cluster answers about one kind.
type Listing struct {
	List
	Err error
}

// ListEach lists objects of several kinds. It asks for one after the other, over one connection, since a connection
// costs more than most answers. Where a cluster takes long for a kind, it is asked for all other kinds at the same time.
// There is a listing for each kind, in their order; but the list ends with the first error that is not ReasonForbidden,
// since the cluster would not answer about the other kinds either.
func (c *Client) ListEach(ctx context.Context, kinds []Kind, options ListOptions) []Listing {
	all := make([]Listing, len(kinds))
	list := func(i int) { all[i].List, all[i].Err = c.List(ctx, kinds[i], options) }
	for i := range kinds {
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			list(i)
		}()
		timer := time.NewTimer(slowAnswer)
		select {
		case <-answered:
			timer.Stop()
			if all[i].isLost() {
				return all[:i+1]
			}
			continue
		case <-timer.C:
		}
		rest := i + 1
		parallel.EachAtMost(len(kinds)-rest, len(kinds), func(n int) { list(rest + n) })
		<-answered
		for ; i < len(all); i++ {
			if all[i].isLost() {
				return all[:i+1]
			}
		}
		break
	}
	return all
}

// isLost says whether the cluster has not answered.
func (l *Listing) isLost() bool { return l.Err != nil && ReasonOf(l.Err) != ReasonForbidden }
