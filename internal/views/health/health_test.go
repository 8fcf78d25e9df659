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

type verdictAge struct {
	verdict verdict.Verdict
	age     time.Duration
}

func scoreOf(t *testing.T, all []verdictAge) int {
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

func TestScoreOfOneVerdict(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		verdictAge
		want int
	}{
		{verdictAge{verdict.Ready, 0}, 100},
		{verdictAge{verdict.Progressing, 99 * time.Hour}, 75},
		{verdictAge{verdict.Behind, -time.Hour}, 75},
		{verdictAge{verdict.Behind, 0}, 75},
		{verdictAge{verdict.Behind, 12 * time.Hour}, 50},
		{verdictAge{verdict.Behind, 24 * time.Hour}, 25},
		{verdictAge{verdict.Behind, 1 << 62}, 25},
		{verdictAge{verdict.Unknown, 0}, 25},
		{verdictAge{verdict.Verdict("another"), 0}, 25},
		{verdictAge{verdict.Failed, 0}, 0},
	} {
		if got := scoreOf(t, []verdictAge{test.verdictAge}); got != test.want {
			t.Errorf("%s for %s scores %d, want %d", test.verdict, test.age, got, test.want)
		}
	}
}

func randomVerdict(r *rand.Rand) verdictAge {
	return verdictAge{verdict.All[r.IntN(len(verdict.All))], time.Duration(r.Int64N(int64(48 * time.Hour)))}
}

func TestScoreKeepsItsPromises(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same each time
	for range 20_000 {
		all := make([]verdictAge, 1+r.IntN(12))
		ready := 0
		for i := range all {
			all[i] = randomVerdict(r)
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
		index := r.IntN(len(all))
		try := func(change string, changed verdictAge, sign int) {
			t.Helper()
			former := all[index]
			all[index] = changed
			if after := scoreOf(t, all); sign*(after-before) < 0 {
				t.Fatalf("%s changes %d to %d: %v", change, before, after, all)
			}
			all[index] = former
		}
		try("being ready", verdictAge{verdict: verdict.Ready}, 1)
		try("failing", verdictAge{verdict: verdict.Failed}, -1)
		if all[index].verdict == verdict.Behind {
			try("being behind for longer", verdictAge{verdict.Behind, all[index].age + time.Hour}, -1)
		}
		if all[index].verdict != verdict.Failed {
			try("falling silent", verdictAge{verdict: verdict.Unknown}, -1)
		}
		if after := scoreOf(t, append(all[:len(all):len(all)], verdictAge{verdict: verdict.Ready})); after < before {
			t.Fatalf("a further ready verdict changes %d to %d", before, after)
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
			t.Fatalf("another order in two parts changes %d to %d", before, got)
		}
	}
}

func TestPartsAddUpToTheScore(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same each time
	for range 5_000 {
		var tally health.Tally
		for range 1 + r.IntN(300) {
			o := randomVerdict(r)
			tally.Add(o.verdict, o.age)
		}
		result := tally.Score()
		score := result.Value
		percent, count, lower, upper := 0, 0, 0, 0
		for _, part := range result.Parts {
			percent, count = percent+part.Percent, count+part.Count
			lower, upper = lower+part.Count*part.Points, upper+part.Count*(part.Points+1)
			if part.Of < part.Count || part.Count == 0 {
				t.Fatal(part)
			}
			if lower/part.Of > score {
				t.Fatalf("score %d of %v", score, result.Parts)
			}
		}
		if total := result.Parts[0].Of; percent != 100 || count != total || score > upper/total {
			t.Fatalf("score %d, %d percent, %d of %d: %v", score, percent, count, total, result.Parts)
		}
	}
}

func TestEmptyTallyHasNoScore(t *testing.T) {
	t.Parallel()
	if (health.Tally{}).Score() != nil {
		t.Error("an empty tally has a score")
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

// The guide computes a score from a table. The test computes it from the same table.
func TestGuideExampleAddsUp(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "templates", "guides", "observe.md.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	var all []verdictAge
	sum := 0
	for _, row := range regexp.MustCompile(`(?m)^\| (\d+) \| (ready|progressing|behind|unknown|failed)(?: for (\d+) hours)? \| (\d+) \| (\d+) \|$`).FindAllStringSubmatch(string(text), -1) {
		number := func(i int) int { n, _ := strconv.Atoi(row[i]); return n }
		o := verdictAge{verdict.Verdict(row[2]), time.Duration(number(3)) * time.Hour}
		if got := scoreOf(t, []verdictAge{o}); got != number(4) || number(1)*got != number(5) {
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
		t.Errorf("the score is %d, %s, but the guide has another one", score, health.DefaultBounds().Grade(score))
	}
}
