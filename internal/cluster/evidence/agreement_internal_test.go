package evidence

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func TestDocumentsAgree(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 11, 23, hour, 0, 0, 0, time.UTC) }
	agents := func(is verdict.Verdict, since time.Time) opinion {
		return opinion{Status: verdict.Status{Verdict: is, Since: since, Message: "agents"}}
	}
	check := func(name string, is verdict.Verdict) opinion {
		return opinion{source: name, Status: verdict.Status{Verdict: is, Message: name}}
	}
	wide := func(o opinion) opinion { o.wide = true; return o }
	root := func(o opinion) opinion { o.OfRoot = true; return o }
	for name, c := range map[string]struct {
		opinions []opinion
		want     opinion
	}{
		"one":              {[]opinion{agents(verdict.Behind, at(1))}, agents(verdict.Behind, at(1))},
		"both are ready":   {[]opinion{agents(verdict.Ready, at(1)), check("errors", verdict.Ready)}, agents(verdict.Ready, at(1))},
		"since the latest": {[]opinion{agents(verdict.Ready, at(1)), agents(verdict.Ready, at(3)), agents(verdict.Ready, at(2))}, agents(verdict.Ready, at(3))},
		"a check that is not passed yet": {
			[]opinion{agents(verdict.Ready, at(1)), check("errors", verdict.Progressing)},
			opinion{source: "errors", Status: verdict.Status{Verdict: verdict.Progressing, Since: at(1), Message: "errors"}},
		},
		"a check without a figure": {
			[]opinion{agents(verdict.Ready, at(1)), check("errors", verdict.Unknown)},
			opinion{source: "errors", Status: verdict.Status{Verdict: verdict.Progressing, Since: at(1), Message: "errors"}},
		},
		"agents that say nothing, and a check of the cluster": {
			[]opinion{agents(verdict.Unknown, at(1)), check("errors", verdict.Ready)}, agents(verdict.Progressing, at(1)),
		},
		"agents that say nothing, and a check of the fleet": {
			[]opinion{agents(verdict.Unknown, at(1)), wide(check("errors", verdict.Ready))}, agents(verdict.Unknown, at(1)),
		},
		"checks of the fleet alone":        {[]opinion{wide(check("errors", verdict.Ready))}, wide(check("errors", verdict.Ready))},
		"checks of the fleet, one unknown": {[]opinion{wide(check("a", verdict.Ready)), wide(check("b", verdict.Unknown))}, wide(check("b", verdict.Progressing))},
		"all unknown":                      {[]opinion{wide(check("a", verdict.Unknown)), agents(verdict.Unknown, at(1))}, agents(verdict.Unknown, at(1))},
		"a failure is as old as itself": {
			[]opinion{agents(verdict.Progressing, at(3)), check("errors", verdict.Failed)}, check("errors", verdict.Failed),
		},
		"a failure of the fleet, of a cluster that says nothing": {
			[]opinion{agents(verdict.Unknown, at(3)), wide(check("errors", verdict.Failed))}, wide(check("errors", verdict.Failed)),
		},
		"two failures, of which one is of a root": {
			[]opinion{root(agents(verdict.Failed, at(3))), check("errors", verdict.Failed)},
			opinion{source: "errors", Status: verdict.Status{Verdict: verdict.Failed, Since: at(3), Message: "errors"}},
		},
		"behind, and a check that is not passed yet": {
			[]opinion{check("errors", verdict.Progressing), agents(verdict.Behind, at(1))}, agents(verdict.Behind, at(1)),
		},
	} {
		if got := agree(c.opinions); got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// The plainest way to say what documents agree on, for all that up to three of them can say.
func TestDocumentsAgreeAsInThePlainestWay(t *testing.T) {
	t.Parallel()
	plainly := func(opinions []opinion) verdict.Verdict {
		every := func(is verdict.Verdict, of func(opinion) bool) bool {
			return !slices.ContainsFunc(opinions, func(o opinion) bool { return of(o) && o.Verdict != is })
		}
		some := func(is verdict.Verdict) bool {
			return slices.ContainsFunc(opinions, func(o opinion) bool { return o.Verdict == is })
		}
		all := func(opinion) bool { return true }
		own := func(o opinion) bool { return !o.wide }
		switch {
		case some(verdict.Failed):
			return verdict.Failed
		case every(verdict.Unknown, all), slices.ContainsFunc(opinions, own) && every(verdict.Unknown, own):
			return verdict.Unknown
		case every(verdict.Ready, all):
			return verdict.Ready
		case some(verdict.Behind) && !some(verdict.Unknown):
			return verdict.Behind
		}
		return verdict.Progressing
	}
	var tried int
	var extend func(opinions []opinion)
	extend = func(opinions []opinion) {
		if len(opinions) > 0 {
			tried++
			got := agree(opinions)
			if want := plainly(opinions); got.Verdict != want {
				t.Errorf("%+v: %s, and plainly %s", opinions, got.Verdict, want)
			}
			decides := slices.IndexFunc(opinions, func(o opinion) bool { return o.source == got.source })
			if decides < 0 || got.Message != opinions[decides].Message ||
				got.Verdict != verdict.Ready && opinions[decides].Verdict == verdict.Ready {
				t.Errorf("%+v: %+v is not of the one that decides", opinions, got)
			}
			other := slices.Clone(opinions)
			slices.Reverse(other)
			if reversed := agree(other); reversed.Verdict != got.Verdict || !reversed.Since.Equal(got.Since) {
				t.Errorf("%+v: %+v, and in another order %+v", opinions, got, reversed)
			}
		}
		if len(opinions) == 3 {
			return
		}
		for _, is := range verdict.All {
			for _, wide := range []bool{false, true} {
				for hour := range 2 {
					since := time.Time{}
					if hour > 0 {
						since = time.Date(2026, 11, 23, hour+len(opinions), 0, 0, 0, time.UTC)
					}
					name := fmt.Sprint(len(opinions))
					extend(
						append(slices.Clone(opinions), opinion{source: name, wide: wide, Status: verdict.Status{Verdict: is, Since: since, Message: name}}),
					)
				}
			}
		}
	}
	extend(nil)
	if tried != 20+20*20+20*20*20 {
		t.Errorf("%d were tried", tried)
	}
}
