package evidence

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

func TestAgreementOfDocuments(t *testing.T) {
	t.Parallel()
	at := func(hour int) time.Time { return time.Date(2026, 11, 23, hour, 0, 0, 0, time.UTC) }
	agentOpinion := func(v verdict.Verdict, since time.Time) opinion {
		return opinion{Status: verdict.Status{Verdict: v, Since: since, Message: "agents"}}
	}
	checkOpinion := func(name string, v verdict.Verdict) opinion {
		return opinion{source: name, Status: verdict.Status{Verdict: v, Message: name}}
	}
	asWide := func(o opinion) opinion { o.wide = true; return o }
	asRoot := func(o opinion) opinion { o.OfRoot = true; return o }
	for name, c := range map[string]struct {
		opinions []opinion
		want     opinion
	}{
		"one document":                {[]opinion{agentOpinion(verdict.Behind, at(1))}, agentOpinion(verdict.Behind, at(1))},
		"both are ready":              {[]opinion{agentOpinion(verdict.Ready, at(1)), checkOpinion("errors", verdict.Ready)}, agentOpinion(verdict.Ready, at(1))},
		"ready since the latest time": {[]opinion{agentOpinion(verdict.Ready, at(1)), agentOpinion(verdict.Ready, at(3)), agentOpinion(verdict.Ready, at(2))}, agentOpinion(verdict.Ready, at(3))},
		"a check that has not passed yet": {
			[]opinion{agentOpinion(verdict.Ready, at(1)), checkOpinion("errors", verdict.Progressing)},
			opinion{source: "errors", Status: verdict.Status{Verdict: verdict.Progressing, Since: at(1), Message: "errors"}},
		},
		"a check without a figure": {
			[]opinion{agentOpinion(verdict.Ready, at(1)), checkOpinion("errors", verdict.Unknown)},
			opinion{source: "errors", Status: verdict.Status{Verdict: verdict.Progressing, Since: at(1), Message: "errors"}},
		},
		"unknown agents and a check of the cluster": {
			[]opinion{agentOpinion(verdict.Unknown, at(1)), checkOpinion("errors", verdict.Ready)}, agentOpinion(verdict.Progressing, at(1)),
		},
		"unknown agents and a check of the fleet": {
			[]opinion{agentOpinion(verdict.Unknown, at(1)), asWide(checkOpinion("errors", verdict.Ready))}, agentOpinion(verdict.Unknown, at(1)),
		},
		"checks of the fleet alone":        {[]opinion{asWide(checkOpinion("errors", verdict.Ready))}, asWide(checkOpinion("errors", verdict.Ready))},
		"checks of the fleet, one unknown": {[]opinion{asWide(checkOpinion("a", verdict.Ready)), asWide(checkOpinion("b", verdict.Unknown))}, asWide(checkOpinion("b", verdict.Progressing))},
		"all unknown":                      {[]opinion{asWide(checkOpinion("a", verdict.Unknown)), agentOpinion(verdict.Unknown, at(1))}, agentOpinion(verdict.Unknown, at(1))},
		"a failure keeps its own time": {
			[]opinion{agentOpinion(verdict.Progressing, at(3)), checkOpinion("errors", verdict.Failed)}, checkOpinion("errors", verdict.Failed),
		},
		"a failure of the fleet and unknown agents": {
			[]opinion{agentOpinion(verdict.Unknown, at(3)), asWide(checkOpinion("errors", verdict.Failed))}, asWide(checkOpinion("errors", verdict.Failed)),
		},
		"two failures, one of the root": {
			[]opinion{asRoot(agentOpinion(verdict.Failed, at(3))), checkOpinion("errors", verdict.Failed)},
			opinion{source: "errors", Status: verdict.Status{Verdict: verdict.Failed, Since: at(3), Message: "errors"}},
		},
		"behind, and a check that has not passed yet": {
			[]opinion{checkOpinion("errors", verdict.Progressing), agentOpinion(verdict.Behind, at(1))}, agentOpinion(verdict.Behind, at(1)),
		},
	} {
		if got := agree(c.opinions); got != c.want {
			t.Errorf("%s: got %+v, want %+v", name, got, c.want)
		}
	}
}

// The test compares agree with the simplest implementation, for every combination of up to three documents.
func TestAgreementMatchesTheSimplestRule(t *testing.T) {
	t.Parallel()
	simplest := func(opinions []opinion) verdict.Verdict {
		every := func(v verdict.Verdict, matches func(opinion) bool) bool {
			return !slices.ContainsFunc(opinions, func(o opinion) bool { return matches(o) && o.Verdict != v })
		}
		some := func(v verdict.Verdict) bool {
			return slices.ContainsFunc(opinions, func(o opinion) bool { return o.Verdict == v })
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
	var combinations int
	var extend func(opinions []opinion)
	extend = func(opinions []opinion) {
		if len(opinions) > 0 {
			combinations++
			got := agree(opinions)
			if want := simplest(opinions); got.Verdict != want {
				t.Errorf("%+v: got %s, want %s", opinions, got.Verdict, want)
			}
			decides := slices.IndexFunc(opinions, func(o opinion) bool { return o.source == got.source })
			if decides < 0 || got.Message != opinions[decides].Message ||
				got.Verdict != verdict.Ready && opinions[decides].Verdict == verdict.Ready {
				t.Errorf("%+v: %+v is not the deciding opinion", opinions, got)
			}
			other := slices.Clone(opinions)
			slices.Reverse(other)
			if reversed := agree(other); reversed.Verdict != got.Verdict || !reversed.Since.Equal(got.Since) {
				t.Errorf("%+v: got %+v, in reverse order %+v", opinions, got, reversed)
			}
		}
		if len(opinions) == 3 {
			return
		}
		for _, v := range verdict.All {
			for _, wide := range []bool{false, true} {
				for hour := range 2 {
					since := time.Time{}
					if hour > 0 {
						since = time.Date(2026, 11, 23, hour+len(opinions), 0, 0, 0, time.UTC)
					}
					name := fmt.Sprint(len(opinions))
					extend(
						append(slices.Clone(opinions), opinion{source: name, wide: wide, Status: verdict.Status{Verdict: v, Since: since, Message: name}}),
					)
				}
			}
		}
	}
	extend(nil)
	if combinations != 20+20*20+20*20*20 {
		t.Errorf("got %d combinations", combinations)
	}
}
