// Command testsummary runs `go test -json` with the arguments after "--":
//
//	testsummary [-must-run pattern] -- [arguments of go test]
//
// It prints a line for each package, the output of failed tests, the reasons of
// skipped ones, and the number of tests with their subtests:
//
//	12 passed, 0 failed, 1 skipped
//
// It exits with 1 if a test failed, did not build or did not finish, or if no
// test ran.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
)

func main() {
	mustRun := flag.String(
		"must-run",
		"",
		"`pattern` (case is ignored) of tests that fail when they are skipped: it is held against their name and their reason",
	)
	flag.Parse()
	os.Exit(run(*mustRun, flag.Args()))
}

func run(mustRun string, args []string) int {
	summary := newSummary(os.Stdout)
	if mustRun != "" {
		pattern, err := regexp.Compile("(?i)" + mustRun)
		if err != nil {
			fmt.Fprintln(os.Stderr, "testsummary:", err)
			return 2
		}
		summary.mustRun = pattern
	}

	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		return 2
	}
	readErr := summary.read(output)
	runErr := cmd.Wait()
	if readErr != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", readErr)
	}
	summary.finish()
	if runErr != nil || readErr != nil || !summary.ok() {
		return 1
	}
	return 0
}
