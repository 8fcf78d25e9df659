package kube

import (
	"context"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/parallel"
)

// patience is how long a cluster may take for one kind before it is asked for all the others at once.
const patience = 500 * time.Millisecond

// Listing is what a cluster answers of one kind.
type Listing struct {
	List
	Err error
}

// ListEach lists objects of several kinds. It asks for one after the other, over one connection, since a connection
// costs more than what most clusters answer. A cluster that takes long for a kind is asked for all the others at once:
// what it takes would add up. The first error that is not ReasonForbidden is the last listing, as the cluster would not
// answer the others either; without one there is a listing for each kind, in their order.
func (c *Client) ListEach(ctx context.Context, kinds []Kind, options ListOptions) []Listing {
	all := make([]Listing, len(kinds))
	asked := 0
	list := func(i int) { all[i].List, all[i].Err = c.List(ctx, kinds[i], options) }
	for asked < len(kinds) {
		start := time.Now()
		list(asked)
		asked++
		if all[asked-1].lost() {
			return all[:asked]
		}
		if time.Since(start) > patience {
			rest := asked
			parallel.EachAtMost(len(kinds)-rest, len(kinds), func(i int) { list(rest + i) })
			break
		}
	}
	for i := asked; i < len(all); i++ {
		if all[i].lost() {
			return all[:i+1]
		}
	}
	return all
}

// lost says that the cluster has not answered.
func (l *Listing) lost() bool { return l.Err != nil && ReasonOf(l.Err) != ReasonForbidden }
