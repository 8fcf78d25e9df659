//go:build unix

package postgrestest_test

import (
	"net"
	"net/url"
	"path/filepath"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/postgrestest"
)

func TestAPostgreSQLAnswersAndEndsWithItsTest(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("needs PostgreSQL, which -short leaves out")
	}
	socket := ""
	t.Run("its test", func(t *testing.T) {
		parsed, err := url.Parse(postgrestest.Start(t))
		if err != nil {
			t.Fatal(err)
		}
		socket = filepath.Join(parsed.Query().Get("host"), ".s.PGSQL.5432")
		connection, err := new(net.Dialer).DialContext(t.Context(), "unix", socket)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = connection.Close() }()
		// The request for TLS, whose answer is one letter.
		if _, err := connection.Write([]byte{0, 0, 0, 8, 4, 210, 22, 47}); err != nil {
			t.Fatal(err)
		}
		answer := make([]byte, 1)
		if _, err := connection.Read(answer); err != nil || (answer[0] != 'S' && answer[0] != 'N') {
			t.Errorf("it answers %q, %v", answer, err)
		}
	})
	if _, err := new(net.Dialer).DialContext(t.Context(), "unix", socket); err == nil && socket != "" {
		t.Error("it still runs")
	}
}
