package kube

import (
	"context"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
)

// slowAnswer is the time for one request after which all others are sent at once.
const slowAnswer = 500 * time.Millisecond

// Listing is the answer about one kind.
type Listing struct {
	List
	Err error
}

// ListEach lists objects of several kinds with [InTurn], up to the first error other than ReasonForbidden.
func (c *ClusterClient) ListEach(ctx context.Context, kinds []ResourceKind, options ListOptions) []Listing {
	all := make([]Listing, len(kinds))
	answered := InTurn(len(kinds), func(i int) error {
		all[i].List, all[i].Err = c.List(ctx, kinds[i], options)
		return all[i].Err
	})
	return all[:answered]
}

// InTurn sends requests one after the other, because a connection costs more than most answers; after a slow answer, it
// sends the others concurrently. It ends with the first error other than ReasonForbidden, which the others would share,
// and returns the number of answered requests.
func InTurn(count int, request func(i int) error) (answered int) {
	errs := make([]error, count)
	for i := range count {
		done := make(chan struct{})
		go func() {
			defer close(done)
			errs[i] = request(i)
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
		parallel.EachAtMost(count-rest, count, func(n int) { errs[rest+n] = request(rest + n) })
		<-done
		for ; i < count; i++ {
			if isLost(errs[i]) {
				return i + 1
			}
		}
		break
	}
	return count
}

func isLost(err error) bool { return err != nil && ReasonOf(err) != ReasonForbidden }
