package claim_test

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/claim"
)

// words splits a list of names.
func words(text string) []string { return strings.Fields(text) }

func TestClustersOfAClaim(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		claim.Situation
		want  claim.Decision
		short string
	}{
		"the first free clusters by name": {
			Situation: claim.Situation{Number: 2, Fleet: words("d c b a"), Pool: words("d c b a"), Elsewhere: map[string]string{"a": "other"}},
			want:      claim.Decision{Clusters: words("b c"), Taken: words("b c")},
		},
		"held clusters first, in their order": {
			Situation: claim.Situation{Number: 3, Fleet: words("a b c d"), Pool: words("a b c d"), Held: words("d b")},
			want:      claim.Decision{Clusters: words("d b a"), Taken: words("a")},
		},
		"release of the last taken clusters": {
			Situation: claim.Situation{Number: 1, Fleet: words("a b c"), Pool: words("a b c"), Held: words("c a b")},
			want:      claim.Decision{Clusters: words("c"), Released: words("a b")},
		},
		"a held cluster outside the pool": {
			Situation: claim.Situation{Number: 2, Fleet: words("a b"), Pool: words("b"), Held: words("a")},
			want:      claim.Decision{Clusters: words("a b"), Taken: words("b")},
		},
		"a replacement for a cluster outside the fleet": {
			Situation: claim.Situation{Number: 2, Fleet: words("b c"), Pool: words("b c"), Held: words("a b")},
			want:      claim.Decision{Clusters: words("b c"), Taken: words("c"), Gone: words("a")},
		},
		"a cluster lost to another claim": {
			Situation: claim.Situation{Number: 1, Fleet: words("a b"), Pool: words("a b"), Held: words("a"), Elsewhere: map[string]string{"a": "other"}},
			want:      claim.Decision{Clusters: words("b"), Taken: words("b"), Lost: words("a")},
		},
		"a duplicate cluster": {
			Situation: claim.Situation{Number: 2, Fleet: words("a b"), Pool: words("a a b"), Held: words("a a")},
			want:      claim.Decision{Clusters: words("a b"), Taken: words("b")},
		},
		"no wanted clusters":                      {Situation: claim.Situation{Fleet: words("a"), Pool: words("a"), Held: words("a")}, want: claim.Decision{Released: words("a")}},
		"enough held clusters with an empty pool": {Situation: claim.Situation{Number: 1, Fleet: words("a"), Held: words("a")}, want: claim.Decision{Clusters: words("a")}},
		"an empty pool": {
			Situation: claim.Situation{Number: 2, Fleet: words("a b")},
			short:     "2 clusters are wanted, and the pool selects no cluster of the fleet",
		},
		"a pool claimed by others": {
			Situation: claim.Situation{Number: 3, Fleet: words("a b c d e"), Pool: words("a b c d"), Held: words("e"), Elsewhere: map[string]string{"d": "y", "c": "x", "b": "x", "z": "q"}},
			short:     `3 clusters are wanted, and the pool of 4 clusters has 1 free beside the 1 that the claim has: claim "x" has b, c; claim "y" has d`,
		},
		"a small pool": {
			Situation: claim.Situation{Number: 1, Fleet: words("a"), Pool: words("a"), Elsewhere: map[string]string{"a": "x"}},
			short:     `1 cluster is wanted, and the pool of 1 cluster has 0 free: claim "x" has a`,
		},
		"a pool without claims": {
			Situation: claim.Situation{Number: 2, Fleet: words("a"), Pool: words("a")},
			short:     "2 clusters are wanted, and the pool of 1 cluster has 1 free",
		},
	} {
		got, err := claim.Decide(test.Situation)
		if test.short != "" {
			if short := (*claim.ShortError)(nil); !errors.As(err, &short) || err.Error() != test.short {
				t.Errorf("%s: got %v, want %q", name, err, test.short)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: got %+v, %v\nwant %+v", name, got, err, test.want)
		}
	}
}

func TestAShortPoolNamesSomeOfManyClaims(t *testing.T) {
	t.Parallel()
	s := claim.Situation{Number: 1, Elsewhere: map[string]string{}}
	for i := range 30 {
		name := fmt.Sprintf("pool-%02d", i)
		s.Fleet, s.Pool, s.Elsewhere[name] = append(s.Fleet, name), append(s.Pool, name), fmt.Sprintf("claim-%02d", max(0, i-12))
	}
	_, err := claim.Decide(s)
	if err == nil ||
		!strings.Contains(
			err.Error(),
			`"claim-00" has pool-00, pool-01, pool-02, pool-03, pool-04, pool-05, pool-06, pool-07, pool-08, pool-09 and 3 more; `,
		) ||
		!strings.HasSuffix(err.Error(), `claim "claim-09" has pool-21; and 8 claims more`) {
		t.Errorf("err = %v", err)
	}
}
