package gitops_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/delivery/gitops"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

// processVariable makes the test binary run one of processes instead of tests; see newProcess.
const processVariable = "FLOTILLA_TEST_PROCESS"

var processes = map[string]func(in io.Reader, out io.Writer) error{
	"serve": serveProcess,
	"apply": applyProcess,
	"claim": claimProcess,
}

func TestMain(m *testing.M) {
	if name := os.Getenv(processVariable); name != "" {
		if err := processes[name](os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	// Most tests wait for git and servers, so by default more tests run at once than there are processors.
	flag.Parse()
	isSet := false
	flag.Visit(func(f *flag.Flag) { isSet = isSet || f.Name == "test.parallel" })
	if !isSet {
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	os.Exit(giteatest.Main(m))
}

// newProcess returns this test binary as another process for the named function. It ends with the test.
func newProcess(t testing.TB, name string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), processVariable+"="+name)
	command.Stderr = os.Stderr
	command.Cancel = func() error { return errors.Join(command.Process.Kill()) }
	command.WaitDelay = time.Minute
	return command
}

// serveProcess serves the repositories of a folder over HTTP until its input ends. It reads a line with the folder's name and writes
// a line with the server's URL.
func serveProcess(in io.Reader, out io.Writer) error {
	var root string
	if _, err := fmt.Fscanf(in, "%q\n", &root); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(out, "http://%s\n", listener.Addr()); err != nil {
		return err
	}
	server := &http.Server{Handler: backend(noTest{}, root), ReadHeaderTimeout: time.Minute}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		_ = server.Close()
	}()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// noTest replaces a test in other processes.
type noTest struct{ testing.TB }

func (noTest) Helper()                  {}
func (noTest) Context() context.Context { return context.Background() }
func (noTest) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// readOwned returns the folders in the records at a tip.
func readOwned(view *gitops.OwnerView) (folder.Trees, error) {
	records, err := view.ReadRecords(context.Background(), "")
	return records.Trees, err
}

// deployedTrees is an alias, since variables named folder hide the package.
type deployedTrees = folder.Trees

// readOwnerWith reads one owner of a branch with the given client.
func readOwnerWith(ctx context.Context, client *gitops.BranchClient, remote git.Remote, owner gitops.Owner) (*gitops.OwnerView, error) {
	branch, err := client.ReadBranch(ctx, remote, owner)
	if err != nil {
		return nil, err
	}
	return branch.ReadOwner(ctx, owner)
}
