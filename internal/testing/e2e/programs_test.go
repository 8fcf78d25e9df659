package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// startAgent starts a program of an agent. A failed test logs its output.
func startAgent(t *testing.T, cluster *kubetest.Server, binary, name string, args []string) {
	t.Helper()
	folder := t.TempDir()
	environment := []string{
		"PATH=" + filepath.Dir(
			programPath(t, binary),
		) + string(
			os.PathListSeparator,
		) + os.Getenv(
			"PATH",
		), // git runs the program as askpass, and the program runs helm
		"KUBECONFIG=" + writeKubeconfig(t, cluster),
		"HOME=" + folder,
		"TMPDIR=" + mkdir(t, folder, "tmp"),
		"GIT_CONFIG_NOSYSTEM=1",
		// Argo CD's programs are one binary with many names. By default it caches
		// a branch for three minutes. https://kubernetes.default.svc stands for the
		// cluster of the kubeconfig.
		"ARGOCD_BINARY_NAME=" + name,
		"ARGOCD_FAKE_IN_CLUSTER=true",
		"ARGOCD_RECONCILIATION_TIMEOUT=3s",
		"ARGOCD_SYNC_WAVE_DELAY=0",
		"ARGOCD_GPG_ENABLED=false",
		"ARGOCD_TLS_DATA_PATH=" + mkdir(t, folder, "tls"),
		"ARGOCD_SSH_DATA_PATH=" + mkdir(t, folder, "ssh"),
		"ARGOCD_GPG_DATA_PATH=" + mkdir(t, folder, "gpg"),
		"ARGOCD_ASK_PASS_SOCK=" + filepath.Join(folder, "ask-pass"),
		"ARGOCD_GNUPGHOME=" + mkdir(t, folder, "gnupg"),
		"RUNTIME_NAMESPACE=flux-system",
	}
	process, err := processtest.Start(t.Context(), processtest.Command{
		Name: name, Binary: programPath(t, binary), Args: args, Folder: folder, Environment: environment,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		process.Stop()
		if t.Failed() {
			t.Logf("%s printed last:\n%s", name, process.Log())
		}
	})
}

// programPath returns the path of a program built by `make e2e`.
func programPath(t *testing.T, name string) string {
	t.Helper()
	path, err := processtest.Tool("FLOTILLA_KUBE_BIN", name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs %s: %v; `make e2e` builds it", name, err)
	}
	return path
}

// runCommand runs a command of a guide in a shell, as users do, with kubectl for the cluster.
func (bed *testbed) runCommand(t *testing.T, command string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", command)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "KUBECONFIG="+writeKubeconfig(t, bed.cluster),
		"PATH="+filepath.Dir(programPath(t, "kubectl"))+string(os.PathListSeparator)+os.Getenv("PATH"))
	if printed, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, printed)
	}
}

func writeKubeconfig(t *testing.T, cluster *kubetest.Server) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(cluster.Kubeconfig()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mkdir(t *testing.T, elements ...string) string {
	t.Helper()
	path := filepath.Join(elements...)
	if err := os.MkdirAll(path, 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}
