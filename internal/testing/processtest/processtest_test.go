//go:build unix

package processtest_test

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

func script(t *testing.T, text string) *processtest.Process {
	t.Helper()
	folder := t.TempDir()
	process, err := processtest.Start(t.Context(), processtest.Command{
		Name: "script", Binary: "/bin/sh", Args: []string{"-c", text}, Folder: folder,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Stop)
	return process
}

func TestStopEndsTheChildrenToo(t *testing.T) {
	pidFile := filepath.Join(t.TempDir(), "pid")
	process := script(t, "sleep 1000 & echo $! > '"+pidFile+".new'; mv '"+pidFile+".new' '"+pidFile+"'; wait")
	var child int
	err := process.Ready(t.Context(), time.Minute, func(context.Context) error {
		text, err := os.ReadFile(pidFile)
		if err == nil {
			child, err = strconv.Atoi(strings.TrimSpace(string(text)))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	process.Stop()
	process.Stop() // a second call has no effect
	for range 600 {
		if errors.Is(syscall.Kill(child, 0), syscall.ESRCH) || zombie(child) {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("process %d still runs", child)
}

// zombie reports whether a process has ended but was not reaped.
func zombie(pid int) bool {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && strings.Contains(string(text), ") Z ")
}

func TestAServerThatEndsIsNeverReady(t *testing.T) {
	never := func(context.Context) error { return errors.New("nothing listens") }

	err := script(t, "echo no such option; exit 1").Ready(t.Context(), time.Minute, never)
	if err == nil || !strings.Contains(err.Error(), "script ended before it was ready") || !strings.Contains(err.Error(), "no such option") {
		t.Errorf("the error is %v", err)
	}
	err = script(t, "echo listen: address already in use; exit 1").Ready(t.Context(), time.Minute, never)
	if !errors.Is(err, processtest.ErrPortTaken) {
		t.Errorf("the error is %v", err)
	}
	err = script(t, "echo starting; sleep 1000").Ready(t.Context(), 10*time.Millisecond, never)
	if err == nil || !strings.Contains(err.Error(), "was not ready after 10ms: nothing listens") {
		t.Errorf("the error is %v", err)
	}
}

func TestAProgramThatIsNotThere(t *testing.T) {
	_, err := processtest.Start(
		t.Context(),
		processtest.Command{Name: "nothing", Binary: filepath.Join(t.TempDir(), "nothing"), Folder: t.TempDir()},
	)
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the error is %v", err)
	}
	(*processtest.Process)(nil).Stop()
}

func TestFreePortsDiffer(t *testing.T) {
	ports, err := processtest.FreePorts(t.Context(), 3)
	if err != nil || len(ports) != 3 || ports[0] == ports[1] || ports[1] == ports[2] {
		t.Errorf("ports are %v, %v", ports, err)
	}
}

func TestThePeakOfMemoryGrows(t *testing.T) {
	before := processtest.PeakMemory()
	if before == 0 {
		t.Skip("the kernel does not tell")
	}
	held := make([]byte, 64<<20)
	for i := range held {
		held[i] = byte(i)
	}
	if after := processtest.PeakMemory(); after < before || after < 64<<10 {
		t.Errorf("the peak was %d KiB, and is %d with %d MiB held", before, after, len(held)>>20)
	}
	reported := metrics{}
	processtest.ReportPeakMemory(reported)
	if reported["peak-MiB"] < 64 {
		t.Errorf("reported is %v", reported)
	}
	processtest.ForgetPeakMemory()
}

func TestChildrenAreCountedWhileTheyRun(t *testing.T) {
	if processtest.PeakMemory() == 0 {
		t.Skip("the kernel does not tell")
	}
	before := processtest.Children()
	script(t, "while :; do :; done")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if now := processtest.Children(); now.Peak > before.Peak && now.Processors > before.Processors {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Errorf("before the process there was %+v, and with it %+v", before, processtest.Children())
}

type metrics map[string]float64

func (m metrics) ReportMetric(n float64, unit string) { m[unit] = n }

func TestAPipedProgramEndsWithItsTest(t *testing.T) {
	var command *exec.Cmd
	t.Run("its test", func(t *testing.T) {
		command = exec.CommandContext(context.Background(), "cat") // not of the test, which would kill it
		input, output := processtest.Piped(t, command)
		if _, err := io.WriteString(input, "hello\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := output.ReadString('\n'); err != nil || line != "hello\n" {
			t.Errorf("it printed %q, %v", line, err)
		}
	})
	if command.ProcessState == nil || !command.ProcessState.Success() {
		t.Errorf("it ended as %v", command.ProcessState)
	}
}
