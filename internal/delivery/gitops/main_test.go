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

// processVariable makes the test binary do something else than run tests, in a
// process of its own; see apart.
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
	// Most tests wait for git, for servers and for each other: more of them than
	// there are processors may run at once, unless somebody says how many.
	flag.Parse()
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == "test.parallel" })
	if !told {
		if err := flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	os.Exit(giteatest.Main(m))
}

// apart is this test binary as another process, that does what the name says.
// It ends with the test.
func apart(t testing.TB, name string) *exec.Cmd {
	t.Helper()
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), processVariable+"="+name)
	command.Stderr = os.Stderr
	command.Cancel = func() error { return errors.Join(command.Process.Kill()) }
	command.WaitDelay = time.Minute
	return command
}

// serveProcess serves the repositories of a folder over http, until its input
// ends. It reads the folder's name and writes the server's URL, a line each.
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

// noTest stands in for a test where there is none.
type noTest struct{ testing.TB }

func (noTest) Helper()                  {}
func (noTest) Context() context.Context { return context.Background() }
func (noTest) Fatalf(format string, args ...any) {
	panic(fmt.Sprintf(format, args...))
}

// ownedIn are the folders that the records at a tip list, as they are.
func ownedIn(view *gitops.OwnerView) (folder.Trees, error) {
	records, err := view.ReadRecords(context.Background(), "")
	return records.Trees, err
}

// deployedTrees is a name that no variable hides.
type deployedTrees = folder.Trees

// inspectBy reads what one owner needs of a branch that nothing else reads.
func inspectBy(ctx context.Context, client *gitops.BranchClient, remote git.Remote, owner gitops.Owner) (*gitops.OwnerView, error) {
	branch, err := client.ReadBranch(ctx, remote, owner)
	if err != nil {
		return nil, err
	}
	return branch.ReadOwner(ctx, owner)
}
