package claim_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/claim"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// fleets is the number of simulated fleets.
var fleets = acceptancetest.Count(100, 2_000)

// TestClaimsOfRandomFleets checks the guarantees of each decision while claims come, grow, shrink and go, and clusters come, go and
// lose their labels.
func TestClaimsOfRandomFleets(t *testing.T) {
	t.Parallel()
	var total tally
	for seed := range fleets {
		w := &simulation{
			t:        t,
			random:   rand.New(rand.NewPCG(uint64(seed), 1)),
			clusters: map[string]bool{},
			claims:   map[string][]string{},
			tally:    &total,
		}
		for range 60 {
			w.step()
		}
		if t.Failed() {
			t.Fatalf("fleet %d", seed)
		}
	}
	t.Logf("%+v", total)
	if total.taken == 0 || total.released == 0 || total.gone == 0 || total.short == 0 {
		t.Errorf("some kinds of events never happened: %+v", total)
	}
}

type tally struct{ taken, released, gone, short int }

type simulation struct {
	t        *testing.T
	random   *rand.Rand
	clusters map[string]bool // true if in the pool
	claims   map[string][]string
	*tally
}

func (w *simulation) step() {
	cluster := fmt.Sprintf("c%d", w.random.IntN(12))
	switch w.random.IntN(6) {
	case 0:
		delete(w.clusters, cluster)
	case 1, 2:
		w.clusters[cluster] = w.random.IntN(4) > 0
	case 3:
		delete(w.claims, w.randomName())
	default:
		w.decide(w.randomName(), w.random.IntN(6))
	}
	claimOf := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		for _, cluster := range w.claims[name] {
			if other, twice := claimOf[cluster]; twice {
				w.t.Errorf("%s belongs to %s and %s", cluster, other, name)
			}
			claimOf[cluster] = name
		}
	}
}

func (w *simulation) randomName() string { return fmt.Sprintf("claim-%d", w.random.IntN(4)) }

func (w *simulation) situation(name string, number int) claim.Situation {
	s := claim.Situation{Number: number, Held: w.claims[name], Elsewhere: map[string]string{}}
	for cluster, selected := range w.clusters {
		s.Fleet = append(s.Fleet, cluster)
		if selected {
			s.Pool = append(s.Pool, cluster)
		}
	}
	for other, clusters := range w.claims {
		for _, cluster := range clusters {
			if other != name {
				s.Elsewhere[cluster] = other
			}
		}
	}
	return s
}

// decide applies a claim. Maps give the clusters in a random order.
func (w *simulation) decide(name string, number int) {
	s := w.situation(name, number)
	d, err := claim.Decide(s)
	again, errAgain := claim.Decide(w.situation(name, number))
	if !reflect.DeepEqual(d, again) || (err == nil) != (errAgain == nil) || err != nil && err.Error() != errAgain.Error() {
		w.t.Errorf("the same situation gives %+v, %v and %+v, %v", d, err, again, errAgain)
	}
	var kept []string // held clusters of the fleet, up to the number
	for _, cluster := range s.Held {
		if _, there := w.clusters[cluster]; there && len(kept) < number {
			kept = append(kept, cluster)
		}
	}
	free := 0
	for cluster, selected := range w.clusters {
		if _, taken := s.Elsewhere[cluster]; selected && !taken && !slices.Contains(kept, cluster) {
			free++
		}
	}
	if short := (*claim.ShortError)(nil); errors.As(err, &short) {
		w.short++
		if free >= number-len(kept) || len(short.Free) != free {
			w.t.Errorf("got %v with %d free clusters", err, free)
		}
		return
	}
	if len(d.Clusters) != number || !slices.Equal(d.Clusters[:len(kept)], kept) || !slices.IsSorted(d.Taken) {
		w.t.Errorf("%d wanted, %v held: got %+v", number, s.Held, d)
	}
	for _, cluster := range d.Taken {
		if !w.clusters[cluster] || s.Elsewhere[cluster] != "" {
			w.t.Errorf("%s is taken, but not free", cluster)
		}
	}
	if len(d.Clusters)-len(d.Taken)+len(d.Released)+len(d.Gone)+len(d.Lost) != len(s.Held) {
		w.t.Errorf("some of %v are missing in %+v", s.Held, d)
	}
	w.taken, w.released, w.gone = w.taken+len(d.Taken), w.released+len(d.Released), w.gone+len(d.Gone)
	w.claims[name] = d.Clusters
}
