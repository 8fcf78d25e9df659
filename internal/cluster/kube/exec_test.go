package kube_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

const execVersion = "client.authentication.k8s.io/v1"

// shellExec returns an exec command that runs a shell script.
func shellExec(t *testing.T, text string) *kube.Exec {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("commands of this test are shell scripts")
	}
	return &kube.Exec{APIVersion: execVersion, Command: "sh", Args: []string{"-c", text, "canary-argument-51c7"},
		Env: map[string]string{"FLOTILLA_CANARY": "canary-env-77ab", "B": "c"}}
}

// execCredential returns the output of a command.
func execCredential(status string) string {
	return fmt.Sprintf(`{"apiVersion":%q,"kind":"ExecCredential","status":%s}`, execVersion, status)
}

func TestACommandSignsIn(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 2)
	server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Header.Get("Authorization")
		answerList(w, "Kustomization", "v1", "", "a")
	})
	cluster := clusterAt(server)
	cluster.Token = ""
	cluster.Exec = shellExec(
		t,
		`printf '%s' '`+execCredential(
			`{"token":"TOKEN","expirationTimestamp":"2030-01-01T00:00:00Z"}`,
		)+`' | sed "s/TOKEN/$FLOTILLA_CANARY-$(echo "$KUBERNETES_EXEC_INFO" | tr -cd '[:alnum:]')/"`,
	)
	if found, err := askOne(t, cluster, time.Minute); err != nil || len(found) != 1 {
		t.Fatalf("got %q: %v", found, err)
	}
	if got := <-requests; got != "Bearer canary-env-77ab-kindExecCredentialapiVersionclientauthenticationk8siov1specinteractivefalse" {
		t.Errorf("got the authorization %q", got)
	}
}

// A command of a kubeconfig receives its cluster if the kubeconfig has provideClusterInfo.
func TestACommandOfAKubeconfigKnowsItsCluster(t *testing.T) {
	t.Parallel()
	requests := make(chan string, 2)
	server := startServer(t, func(w http.ResponseWriter, r *http.Request) {
		requests <- r.Header.Get("Authorization")
		answerList(w, "Kustomization", "v1", "", "a")
	})
	file := filepath.Join(t.TempDir(), "info.json")
	run := shellExec(t, `echo "$KUBERNETES_EXEC_INFO" > `+file+`; echo '`+execCredential(`{"token":"abc"}`)+`'`)
	user, err := json.Marshal(map[string]any{"exec": map[string]any{
		"apiVersion": execVersion, "command": run.Command, "args": run.Args, "provideClusterInfo": true, "interactiveMode": "Never",
	}})
	if err != nil {
		t.Fatal(err)
	}
	clusterJSON, err := json.Marshal(map[string]any{
		"server": server.URL, "certificate-authority-data": []byte(certificateOf(server)),
		"extensions": []any{map[string]any{"name": "client.authentication.k8s.io/exec", "extension": map[string]any{"audience": "a-1"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if found, err := askOne(t, kube.Cluster{Kubeconfig: newKubeconfig(string(clusterJSON), string(user))}, time.Minute); err != nil || len(found) != 1 {
		t.Fatalf("got %q: %v", found, err)
	}
	if got := <-requests; got != "Bearer abc" {
		t.Errorf("got the authorization %q", got)
	}
	info, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(info), `"server":"`+server.URL+`"`) || !strings.Contains(string(info),
		`"config":{"audience":"a-1"}`) {
		t.Errorf("the command received %s: %v", info, err)
	}
}

// The error of a failed command has a reason, and contains neither arguments and environment nor printed secrets.
func TestAFailedCommandHasAReason(t *testing.T) {
	t.Parallel()
	server := startServer(t, func(http.ResponseWriter, *http.Request) { t.Error("the server received a request") })
	certificate, _ := kubetest.SelfSigned(t)
	inJSON, err := json.Marshal(certificate)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		script string
		reason kube.Reason
		want   string
	}{
		"failure": {`echo "canary-printed-9d"; echo "Unable to locate credentials: $FLOTILLA_CANARY" >&2; exit 3`, kube.ReasonCommand,
			`the exec command "sh" fails (exit status 3): Unable to locate credentials: `},
		"failure without output": {`exit 3`, kube.ReasonCommand, `the exec command "sh" fails (exit status 3), and says nothing; run it by hand`},
		"long output": {`i=0; while [ $i -lt 500 ]; do echo "canary $FLOTILLA_CANARY" | tr -d '\n' >&2; i=$((i+1)); done; echo >&2; echo "token expired" >&2; exit 1`, kube.ReasonCommand,
			`the exec command "sh" fails (exit status 1): token expired`},
		"no output": {`true`, kube.ReasonCommand, `the exec command "sh" prints no ExecCredential`},
		"garbage":   {`echo canary-printed-9d`, kube.ReasonCommand, `the exec command "sh" prints no ExecCredential`},
		"another kind": {`echo '{"kind":"Secret","status":{"token":"canary-printed-9d"}}'`, kube.ReasonCommand,
			`the exec command "sh" prints no ExecCredential`},
		"another version": {`echo '{"kind":"ExecCredential","apiVersion":"v2","status":{"token":"canary-printed-9d"}}'`,
			kube.ReasonCommand, `the exec command "sh" prints an ExecCredential of another version than "client.authentication.k8s.io/v1"`},
		"no status": {`echo '` + execCredential("null") + `'`, kube.ReasonCommand,
			`the exec command "sh" prints an ExecCredential without a credential`},
		"no key": {`echo '` + execCredential(`{"clientCertificateData":"canary-printed-9d"}`) + `'`, kube.ReasonCommand,
			`the exec command "sh" prints a certificate without its key, or a key without its certificate`},
		"a line break": {`printf '%s' '` + execCredential(`{"token":"canary-printed-9d\nx"}`) + `'`, kube.ReasonCommand,
			`the exec command "sh" prints a token with a line break in it`},
		"an invalid key": {`printf '%s' '` + execCredential(`{"clientCertificateData":`+string(inJSON)+`,"clientKeyData":"canary-printed-9d"}`) + `'`, kube.ReasonConfiguration, `its certificates cannot be used: `},
		"too much":       {`head -c 3000000 /dev/zero`, kube.ReasonCommand, `the exec command "sh" `},
		"endless":        {`sleep 1000 & sleep 1000`, kube.ReasonTimeout, `the exec command "sh" was stopped: it did not end in time`},
		"a child process left": {`sleep 60 & echo '` + execCredential("null") + `'`, kube.ReasonCommand,
			`the exec command "sh" prints an ExecCredential without a credential`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := clusterAt(server)
			cluster.Exec = shellExec(t, c.script)
			deadline := time.Minute
			if name == "endless" {
				deadline = time.Second
			}
			_, err := askOne(t, cluster, deadline)
			if err == nil || kube.ReasonOf(err) != c.reason || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("the error is %v, reason %q; want %q: %q", err, kube.ReasonOf(err), c.reason, c.want)
			}
			if err != nil && strings.Contains(err.Error(), "canary") {
				t.Errorf("the error contains a secret: %v", err)
			}
		})
	}
}

func TestAMissingCommandHasAReason(t *testing.T) {
	t.Parallel()
	cluster := kube.Cluster{Host: "https://api.example.com", Exec: &kube.Exec{APIVersion: execVersion, Command: "flotilla-no-such-command"}}
	_, err := askOne(t, cluster, time.Minute)
	if kube.ReasonOf(err) != kube.ReasonCommand ||
		err.Error() != `the exec command "flotilla-no-such-command" is not installed where Terraform runs` {
		t.Errorf("the error is %v", err)
	}
	user := `{exec: {apiVersion: client.authentication.k8s.io/v1, command: flotilla-no-such-command, installHint: "see https://example.com\nfor how"}}`
	_, err = askOne(t, kube.Cluster{Kubeconfig: newKubeconfig(`{server: "https://api.example.com"}`, user)}, time.Minute)
	if kube.ReasonOf(err) != kube.ReasonCommand ||
		err.Error() != `the exec command "flotilla-no-such-command" is not installed: see https://example.com for how` {
		t.Errorf("the error is %v", err)
	}
}

func TestEqualCommandsRunOnce(t *testing.T) {
	t.Parallel()
	server := startServer(t, func(w http.ResponseWriter, _ *http.Request) { answerList(w, "Kustomization", "v1", "", "a") })
	file := filepath.Join(t.TempDir(), "runs")
	shared := shellExec(t, `echo run >> `+file+`; echo '`+execCredential(`{"token":"abc"}`)+`'`)
	clusters := map[string]kube.Cluster{}
	for i := range 40 {
		cluster := clusterAt(server)
		cluster.Exec = shared
		clusters[fmt.Sprint(i)] = cluster
	}
	for name, answer := range kube.QueryAll(t.Context(), clusters, kube.QueryOptions{}, listNames) {
		if answer.Err != nil || !slices.Equal(answer.Value, []string{"a"}) {
			t.Errorf("%s: %v", name, answer)
		}
	}
	if runs, err := os.ReadFile(file); err != nil || string(runs) != "run\n" {
		t.Errorf("got the runs %q: %v", runs, err)
	}
}

func TestCancellationStopsCommands(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	file := filepath.Join(t.TempDir(), "runs")
	cluster := kube.Cluster{Host: "https://api.example.com", Exec: shellExec(t, `echo run > `+file+`; sleep 1000`)}
	go func() {
		for {
			if _, err := os.Stat(file); err == nil || ctx.Err() != nil {
				cancel()
				return
			}
			time.Sleep(time.Millisecond)
		}
	}()
	answer := kube.QueryAll(ctx, map[string]kube.Cluster{"a": cluster}, kube.QueryOptions{Deadline: time.Minute}, listNames)["a"]
	if kube.ReasonOf(answer.Err) != kube.ReasonCanceled {
		t.Errorf("got %v, want ReasonCanceled", answer)
	}
}
