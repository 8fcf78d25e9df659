//go:build unix

// Package postgrestest starts a real PostgreSQL for remote states.
package postgrestest

import (
	"context"
	"errors"
	"net/url"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// patience is for a busy machine: two seconds are usual.
const patience = 2 * time.Minute

// folders are where packages put programs that are not on PATH.
var folders = []string{
	"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*", "/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin",
}

// Start starts a server until the end of the test, and returns the conn_str for Terraform's backend pg. Without PostgreSQL, the
// test is skipped.
func Start(t testing.TB) string {
	t.Helper()
	program := postgres()
	if program == "" {
		t.Skip("needs PostgreSQL, which `apt-get install postgresql` brings; FLOTILLA_POSTGRES names a program postgres")
	}
	folder, err := os.MkdirTemp("", "postgrestest-") //nolint:usetesting // another user has to enter it
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { processtest.RemoveFolder(folder) })
	as := ""
	if os.Geteuid() == 0 { // the server refuses root
		if as, err = unprivileged(folder); err != nil {
			t.Fatal(err)
		}
	}
	process, err := processtest.Start(context.WithoutCancel(t.Context()), processtest.Command{
		Name: "postgres", Binary: "/bin/sh",
		Args: []string{"-c", `"${0%/*}/initdb" --pgdata=data --username=flotilla --auth=trust --no-locale --encoding=UTF8 --no-sync &&
			exec "$0" -D data -F -c listen_addresses= -c unix_socket_directories="$PWD"`, program},
		Folder: folder, User: as, Environment: []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(process.Stop)
	err = process.Ready(t.Context(), patience, func(context.Context) error {
		if !strings.Contains(process.Log(), "database system is ready to accept connections") {
			return errors.New("it does not accept connections yet")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return "postgres://flotilla@/postgres?sslmode=disable&host=" + url.QueryEscape(folder)
}

// unprivileged gives a folder to a user other than root.
func unprivileged(folder string) (name string, err error) {
	for _, name := range []string{"postgres", "nobody"} {
		if _, err = user.Lookup(name); err != nil {
			continue
		}
		uid, gid, err := processtest.IDs(name)
		if err == nil {
			err = os.Chown(folder, uid, gid)
		}
		return name, err
	}
	return "", err
}

// postgres returns the path of the server, beside initdb, or "".
func postgres() string {
	if program := os.Getenv("FLOTILLA_POSTGRES"); program != "" {
		return program
	}
	if program, err := exec.LookPath("postgres"); err == nil {
		// It may be a link.
		if program, err = filepath.EvalSymlinks(program); err == nil {
			return program
		}
	}
	for _, folder := range folders {
		if programs, _ := filepath.Glob(filepath.Join(folder, "postgres")); len(programs) > 0 {
			return slices.Max(programs)
		}
	}
	return ""
}
