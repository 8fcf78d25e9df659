package health_test

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/views/health"
)

type one struct {
	verdict verdict.Verdict
	age     time.Duration
}

func scoreOf(t *testing.T, all []one) int {
	t.Helper()
	var tally health.Tally
	for _, o := range all {
		tally.Add(o.verdict, o.age)
	}
	score := tally.Score()
	if (score == nil) != (len(all) == 0) || score != nil && (score.Value < 0 || score.Value > 100) {
		t.Fatalf("the score of %v is %v", all, score)
	}
	if score == nil {
		return 0
	}
	return score.Value
}

func TestScoresOfOne(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		one
		want int
	}{
		{one{verdict.Ready, 0}, 100},
		{one{verdict.Progressing, 99 * time.Hour}, 75},
		{one{verdict.Behind, -time.Hour}, 75},
		{one{verdict.Behind, 0}, 75},
		{one{verdict.Behind, 12 * time.Hour}, 50},
		{one{verdict.Behind, 24 * time.Hour}, 25},
		{one{verdict.Behind, 1 << 62}, 25},
		{one{verdict.Unknown, 0}, 25},
		{one{verdict.Verdict("another"), 0}, 25},
		{one{verdict.Failed, 0}, 0},
	} {
		if got := scoreOf(t, []one{test.one}); got != test.want {
			t.Errorf("%s for %s scores %d, want %d", test.verdict, test.age, got, test.want)
		}
	}
}

func random(r *rand.Rand) one {
	return one{verdict.All[r.IntN(len(verdict.All))], time.Duration(r.Int64N(int64(48 * time.Hour)))}
}

func TestAScoreKeepsItsPromises(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	for range 20_000 {
		all := make([]one, 1+r.IntN(12))
		ready := 0
		for i := range all {
			all[i] = random(r)
			if r.IntN(3) == 0 {
				all[i].verdict = verdict.Ready
			}
			if all[i].verdict == verdict.Ready {
				ready++
			}
		}
		before := scoreOf(t, all)
		if (before == 100) != (ready == len(all)) {
			t.Fatalf("%v score %d", all, before)
		}
		at := r.IntN(len(all))
		try := func(what string, changed one, sign int) {
			t.Helper()
			was := all[at]
			all[at] = changed
			if after := scoreOf(t, all); sign*(after-before) < 0 {
				t.Fatalf("%s takes %d to %d: %v", what, before, after, all)
			}
			all[at] = was
		}
		try("being ready", one{verdict: verdict.Ready}, 1)
		try("failing", one{verdict: verdict.Failed}, -1)
		if all[at].verdict == verdict.Behind {
			try("being behind for longer", one{verdict.Behind, all[at].age + time.Hour}, -1)
		}
		if all[at].verdict != verdict.Failed {
			try("falling silent", one{verdict: verdict.Unknown}, -1)
		}
		if after := scoreOf(t, append(all[:len(all):len(all)], one{verdict: verdict.Ready})); after < before {
			t.Fatalf("one more that is ready takes %d to %d", before, after)
		}
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		var first, second health.Tally
		for i, o := range all {
			if i%2 == 0 {
				first.Add(o.verdict, o.age)
			} else {
				second.Add(o.verdict, o.age)
			}
		}
		first.Join(second)
		if got := first.Score().Value; got != before {
			t.Fatalf("in another order and in two parts, %d becomes %d", before, got)
		}
	}
}

func TestPartsAddUpToTheScore(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same each time
	for range 5_000 {
		var tally health.Tally
		for range 1 + r.IntN(300) {
			o := random(r)
			tally.Add(o.verdict, o.age)
		}
		made := tally.Score()
		score := made.Value
		percent, count, least, most := 0, 0, 0, 0
		for _, part := range made.Parts {
			percent, count = percent+part.Percent, count+part.Count
			least, most = least+part.Count*part.Points, most+part.Count*(part.Points+1)
			if part.Of < part.Count || part.Count == 0 {
				t.Fatal(part)
			}
			if least/part.Of > score {
				t.Fatalf("score %d of %v", score, made.Parts)
			}
		}
		if of := made.Parts[0].Of; percent != 100 || count != of || score > most/of {
			t.Fatalf("score %d, %d percent, %d of %d: %v", score, percent, count, of, made.Parts)
		}
	}
}

func TestAnEmptyTallyHasNoScore(t *testing.T) {
	t.Parallel()
	if (health.Tally{}).Score() != nil {
		t.Error("nothing has a score")
	}
}

func TestGrades(t *testing.T) {
	t.Parallel()
	for score, want := range map[int]health.Grade{0: health.Poor, 39: health.Poor, 40: health.Fair, 74: health.Fair, 75: health.Good, 100: health.Good} {
		if got := health.DefaultBounds().Grade(score); got != want {
			t.Errorf("%d is %s, want %s", score, got, want)
		}
	}
	if got := (health.Bounds{Good: 50, Poor: 50}).Grade(49); got != health.Poor {
		t.Errorf("49 is %s", got)
	}
}

// The guide computes a score; so does this, of the same table.
func TestTheGuidesExampleAddsUp(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "templates", "guides", "observe.md.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []one
	sum := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| (ready|progressing|behind|unknown|failed)(?: for (\d+) hours)? \| (\d+) \| (\d+) \|$`).FindAllStringSubmatch(string(text), -1) {
		number := func(i int) int { n, _ := strconv.Atoi(row[i]); return n }
		o := one{verdict.Verdict(row[2]), time.Duration(number(3)) * time.Hour}
		if got := scoreOf(t, []one{o}); got != number(4) || number(1)*got != number(5) {
			t.Errorf("%q: each earns %d", row[0], got)
		}
		sum += number(5)
		for range number(1) {
			all = append(all, o)
		}
	}
	total := regexp.MustCompile(`(?m)^\| \*\*(\d+)\*\* \| \| \| \*\*(\d+)\*\* \|$`).FindStringSubmatch(string(text))
	if len(all) < 5 || total == nil || total[1] != strconv.Itoa(len(all)) || total[2] != strconv.Itoa(sum) {
		t.Fatalf("%d rows earn %d, and the guide says %q", len(all), sum, total)
	}
	score := scoreOf(t, all)
	if !regexp.MustCompile(`(?m)score is \*\*` + strconv.Itoa(score) + `\*\*: ` + string(health.DefaultBounds().Grade(score))).Match(text) {
		t.Errorf("the score is %d, %s, and the guide does not say so", score, health.DefaultBounds().Grade(score))
	}
}
