//go:build unix

package metrics_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/views/metrics"
)

// runScript runs a script of the example. `terraform output` prints the metrics, or fails.
func runScript(t *testing.T, text string, fails bool, name string, arguments ...string) error {
	t.Helper()
	folder := t.TempDir()
	terraform := "#!/bin/sh\n[ \"$*\" = 'output -raw metrics' ] && cat '" + filepath.Join(folder, "text") + "'\n"
	if fails {
		terraform = "#!/bin/sh\necho half; exit 1\n"
	}
	for file, content := range map[string]string{"text": text, "terraform": terraform} {
		if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path, err := filepath.Abs(filepath.Join(examples, name))
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), path, arguments...)
	command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "no_proxy=127.0.0.1")
	printed, err := command.CombinedOutput()
	t.Logf("%s printed %s", name, printed)
	return err
}

// A push replaces the former one. Without an output, the script pushes nothing.
func TestPushReplacesTheFormerMetrics(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("needs curl")
	}
	var got []string
	status := http.StatusOK
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, r.Method+" "+r.URL.Path+"\n"+string(body))
		w.WriteHeader(status)
	}))
	t.Cleanup(gateway.Close)
	text := metrics.Text(troubledFleet(t))
	if err := runScript(t, text, false, "push.sh", gateway.URL, "prod"); err != nil || len(got) != 1 ||
		got[0] != "PUT /metrics/job/flotilla/instance/prod\n"+text {
		t.Errorf("%v: it sent %q", err, got)
	}
	if err := runScript(t, text, true, "push.sh", gateway.URL, "prod"); err == nil || len(got) != 1 {
		t.Errorf("%v: without an output it sent %q", err, got)
	}
	status = http.StatusBadRequest
	if err := runScript(t, text, false, "push.sh", gateway.URL, "prod"); err == nil {
		t.Error("a refused push is not an error")
	}
}

func TestTextfileIsWrittenAtOnce(t *testing.T) {
	t.Parallel()
	folder, text := t.TempDir(), metrics.Text(troubledFleet(t))
	readTextfile := func() string {
		content, err := os.ReadFile(filepath.Join(folder, "flotilla-prod.prom"))
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	if err := runScript(t, text, false, "textfile.sh", folder, "prod"); err != nil || readTextfile() != text {
		t.Errorf("%v: the file is %q", err, readTextfile())
	}
	if err := runScript(t, text, true, "textfile.sh", folder, "prod"); err == nil || readTextfile() != text {
		t.Errorf("%v: without an output the file is %q", err, readTextfile())
	}
	files, err := os.ReadDir(folder)
	if err != nil || len(files) != 1 || !strings.HasSuffix(files[0].Name(), ".prom") {
		t.Errorf("%v: there are %v", err, files)
	}
}
