package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
)

// event is a line of `go test -json`; see `go doc test2json` and, for the build
// events, `go help buildjson`.
type event struct {
	Action      string
	Package     string
	ImportPath  string
	Test        string
	Elapsed     float64
	Output      string
	FailedBuild string
}

// elsewhere is the reason of a test that this run leaves to another one.
var elsewhere = regexp.MustCompile("`make acceptance` runs it")

// summary gathers the events of a run and writes what a reader wants to know.
type summary struct {
	out      io.Writer
	mustRun  *regexp.Regexp
	packages map[string]*packageRun
	builds   map[string]*strings.Builder // by import path
	skips    []string
	total    counts
}

type counts struct{ passed, failed, skipped int }

func (c counts) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", c.passed, c.failed, c.skipped)
}

// packageRun is a package whose tests are running.
type packageRun struct {
	counts
	output map[string]*strings.Builder // by test; "" is the package's own
	open   []string                    // started, not ended, in order
}

func newSummary(out io.Writer) *summary {
	return &summary{
		out:      out,
		packages: map[string]*packageRun{},
		builds:   map[string]*strings.Builder{},
	}
}

func (s *summary) read(input io.Reader) error {
	reader := bufio.NewReader(input)
	for {
		line, err := reader.ReadBytes('\n')
		if len(line) > 0 {
			s.line(line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (s *summary) line(line []byte) {
	var e event
	if json.Unmarshal(line, &e) != nil || e.Action == "" {
		s.print("%s", line) // what is not an event is for the reader
		return
	}
	switch {
	case e.Action == "build-output":
		appendTo(s.builds, e.ImportPath, e.Output)
	case e.Package == "" || e.Action == "build-fail":
	case e.Test == "":
		s.packageEvent(e)
	default:
		s.testEvent(e)
	}
}

func (s *summary) testEvent(e event) {
	p := s.running(e.Package)
	switch e.Action {
	case "run":
		p.open = append(p.open, e.Test)
	case "output":
		appendTo(p.output, e.Test, e.Output)
	case "pass":
		p.end(e.Test)
		p.passed++
	case "skip":
		p.end(e.Test)
		reason := reason(p.output[e.Test])
		name := e.Package + "." + e.Test
		if s.mustRun != nil && (s.mustRun.MatchString(name) || s.mustRun.MatchString(reason)) && !elsewhere.MatchString(reason) {
			p.failed++
			s.print("--- must not be skipped: %s: %s\n", name, reason)
			return
		}
		p.skipped++
		s.skips = append(s.skips, name+": "+reason)
	case "fail":
		p.end(e.Test)
		p.failed++
		s.print("%s", text(p.output[e.Test]))
	}
}

func (s *summary) packageEvent(e event) {
	p := s.running(e.Package)
	switch e.Action {
	case "output":
		appendTo(p.output, "", e.Output)
	case "pass", "fail", "skip":
		s.endPackage(e, p)
	}
}

func (s *summary) endPackage(e event, p *packageRun) {
	delete(s.packages, e.Package)
	// A test that never ended took its binary down, or was taken down with it.
	for _, test := range p.open {
		p.failed++
		s.print("--- did not finish: %s.%s\n%s", e.Package, test, text(p.output[test]))
	}
	if e.Action == "fail" && p.failed == 0 {
		p.failed++ // its build, its TestMain or its coverage
		s.print("%s%s", text(s.builds[e.FailedBuild]), text(p.output[""]))
	}
	s.total.passed += p.passed
	s.total.failed += p.failed
	s.total.skipped += p.skipped
	if p.counts == (counts{}) {
		return // no tests
	}
	verdict := "ok  "
	if p.failed > 0 {
		verdict = "FAIL"
	}
	s.print("%s %s %.1fs: %s\n", verdict, e.Package, e.Elapsed, p.counts)
}

// finish writes the end of the report.
func (s *summary) finish() {
	for name, p := range s.packages { // only when go test itself was ended
		s.endPackage(event{Action: "fail", Package: name}, p)
	}
	slices.Sort(s.skips)
	for _, skip := range s.skips {
		s.print("skipped %s\n", skip)
	}
	s.print("%s\n", s.total)
}

func (s *summary) ok() bool { return s.total.failed == 0 && s.total.passed > 0 }

func (s *summary) running(name string) *packageRun {
	p := s.packages[name]
	if p == nil {
		p = &packageRun{output: map[string]*strings.Builder{}}
		s.packages[name] = p
	}
	return p
}

func (s *summary) print(format string, args ...any) {
	_, _ = fmt.Fprintf(s.out, format, args...)
}

func (p *packageRun) end(test string) {
	p.open = slices.DeleteFunc(p.open, func(open string) bool { return open == test })
}

func appendTo(outputs map[string]*strings.Builder, key, text string) {
	if outputs[key] == nil {
		outputs[key] = &strings.Builder{}
	}
	outputs[key].WriteString(text)
}

func text(output *strings.Builder) string {
	if output == nil {
		return ""
	}
	return output.String()
}

// reason is what a skipped test said, without go test's own lines.
func reason(output *strings.Builder) string {
	var said []string
	for line := range strings.Lines(text(output)) {
		line = strings.TrimSpace(line)
		if line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			said = append(said, line)
		}
	}
	return strings.Join(said, " ")
}
