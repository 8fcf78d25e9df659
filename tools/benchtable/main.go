// Command benchtable reads what `go test -bench` wrote and prints it as tables:
// one for each package, a row for each benchmark, a column for each unit.
//
//	benchtable < bench.txt
//
// Of several runs of a benchmark it shows the fastest.
package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

func main() {
	tables, err := read(os.Stdin)
	if err != nil {
		fmt.Fprintln(os.Stderr, "benchtable:", err)
		os.Exit(1)
	}
	for i := range tables {
		tables[i].write(os.Stdout)
	}
}

// table is what the benchmarks of a package came to.
type table struct {
	pkg   string
	units []string // in the order in which they appeared
	rows  []row
}

type row struct {
	benchmark string
	values    map[string]float64 // by unit
}

// result is a line as in "BenchmarkName/sub-8  100  12.3 ns/op  4 B/op", of several values.
var result = regexp.MustCompile(`^Benchmark(\S+?)(?:-\d+)?\s+\d+\s+(.* \S+/op.*)$`)

// read passes over what is neither a package nor a result.
func read(from io.Reader) ([]table, error) {
	var tables []table
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		if pkg, ok := strings.CutPrefix(lines.Text(), "pkg: "); ok {
			tables = append(tables, table{pkg: pkg})
		} else if match := result.FindStringSubmatch(lines.Text()); match != nil && len(tables) > 0 {
			tables[len(tables)-1].add(match[1], strings.Fields(match[2]))
		}
	}
	return slices.DeleteFunc(tables, func(t table) bool { return len(t.rows) == 0 }), lines.Err()
}

// add adds a benchmark with its fields, a number and a unit each in turn.
func (t *table) add(benchmark string, fields []string) {
	values := map[string]float64{}
	for i := 0; i+1 < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			continue
		}
		unit := fields[i+1]
		values[unit] = value
		if !slices.Contains(t.units, unit) {
			t.units = append(t.units, unit)
		}
	}
	at := slices.IndexFunc(t.rows, func(r row) bool { return r.benchmark == benchmark })
	switch {
	case at < 0:
		t.rows = append(t.rows, row{benchmark, values})
	case values["ns/op"] < t.rows[at].values["ns/op"]:
		t.rows[at].values = values
	}
}

// write writes the table: names to the left, numbers to the right.
func (t *table) write(to io.Writer) {
	lines := [][]string{{t.pkg}}
	for _, unit := range t.units {
		lines[0] = append(lines[0], heading(unit))
	}
	for _, row := range t.rows {
		line := []string{row.benchmark}
		for _, unit := range t.units {
			text := ""
			if value, has := row.values[unit]; has {
				text = format(value, unit)
			}
			line = append(line, text)
		}
		lines = append(lines, line)
	}
	widths := make([]int, len(lines[0]))
	for _, line := range lines {
		for i, cell := range line {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	for _, line := range lines {
		fmt.Fprintf(to, "%-*s", widths[0], line[0])
		for i, cell := range line[1:] {
			fmt.Fprintf(to, "  %*s", widths[i+1], cell)
		}
		fmt.Fprintln(to)
	}
	fmt.Fprintln(to)
}

func heading(unit string) string {
	switch unit {
	case "ns/op":
		return "time"
	case "B/op":
		return "allocated"
	}
	return unit
}

// format writes times and sizes with a unit of their own, and everything in three digits or more.
func format(value float64, unit string) string {
	switch unit {
	case "ns/op":
		for _, scale := range []time.Duration{time.Second, time.Millisecond, time.Microsecond} {
			if value >= float64(scale) {
				return significant(value/float64(scale)) + strings.TrimPrefix(scale.String(), "1")
			}
		}
		return significant(value) + "ns"
	case "B/op":
		for i, scale := range []string{"GiB", "MiB", "KiB"} {
			if size := float64(int64(1) << (10 * (3 - i))); value >= size {
				return significant(value/size) + scale
			}
		}
		return significant(value) + "B"
	}
	return significant(value)
}

func significant(value float64) string {
	if value == math.Trunc(value) {
		return strconv.FormatFloat(value, 'f', 0, 64)
	}
	digits := 0
	for limit := 100.0; digits < 2 && value < limit; limit /= 10 {
		digits++
	}
	return strconv.FormatFloat(value, 'f', digits, 64)
}
