package processtest

import (
	"bufio"
	"io"
	"os/exec"
	"testing"
)

// Piped starts a program, such as the test binary, that runs until its input ends with the test. The caller reads its output.
func Piped(t testing.TB, command *exec.Cmd) (input io.Writer, output *bufio.Reader) {
	t.Helper()
	stdin, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = command.Wait()
	})
	return stdin, bufio.NewReader(stdout)
}
