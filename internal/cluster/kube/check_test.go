package kube_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
)

// newKubeconfig returns a kubeconfig with one context, cluster and user.
func newKubeconfig(cluster, user string) string {
	return "apiVersion: v1\nkind: Config\ncurrent-context: one\ncontexts:\n- {name: one, context: {cluster: c, user: u}}\nclusters:\n- name: c\n  cluster: " +
		cluster + "\nusers:\n- name: u\n  user: " + user + "\n"
}

func TestCheckFindsProblemsOfACluster(t *testing.T) {
	t.Parallel()
	const host, server = "https://api.example.com:6443", `{server: "https://api.example.com:6443"}`
	certificate, key := kubetest.SelfSigned(t)
	_, otherKey := kubetest.SelfSigned(t)
	inBase64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	aws := &kube.Exec{
		APIVersion: "client.authentication.k8s.io/v1beta1",
		Command:    "aws",
		Args:       []string{"eks"},
		Env:        map[string]string{"A": "b"},
	}
	byUser := func(user string) kube.Cluster { return kube.Cluster{Kubeconfig: newKubeconfig(server, user)} }
	byCluster := func(cluster string) kube.Cluster {
		return kube.Cluster{Kubeconfig: newKubeconfig(cluster, `{token: hunter2}`)}
	}
	for name, c := range map[string]struct {
		cluster kube.Cluster
		unknown []string
		want    string // problems, one per line
	}{
		"a host alone":              {cluster: kube.Cluster{Host: host}},
		"a path behind the host":    {cluster: kube.Cluster{Host: "https://rancher.example.com/k8s/clusters/c-1"}},
		"a token":                   {cluster: kube.Cluster{Host: host, ClusterCACertificate: certificate, Token: "hunter2"}},
		"a certificate":             {cluster: kube.Cluster{Host: host, ClientCertificate: certificate, ClientKey: key}},
		"a command":                 {cluster: kube.Cluster{Host: host, Exec: aws}},
		"a proxy":                   {cluster: kube.Cluster{Host: host, ProxyURL: "socks5://me:hunter2@proxy:1080", TLSServerName: "api"}},
		"plain http":                {cluster: kube.Cluster{Host: "http://api.example.com"}},
		"a token to this machine":   {cluster: kube.Cluster{Host: "http://127.0.0.1:8001", Token: "hunter2"}},
		"an IPv6 host":              {cluster: kube.Cluster{Host: "https://[2001:db8::1]:6443"}},
		"an unknown host":           {cluster: kube.Cluster{Token: "hunter2"}, unknown: []string{"host"}},
		"an unknown kubeconfig":     {cluster: kube.Cluster{Context: "x"}, unknown: []string{"kubeconfig"}},
		"an unknown key":            {cluster: kube.Cluster{Host: host, ClientCertificate: certificate}, unknown: []string{"client_key"}},
		"a kubeconfig":              {cluster: byUser(`{token: hunter2}`)},
		"a kubeconfig without user": {cluster: kube.Cluster{Kubeconfig: strings.Replace(newKubeconfig(server, `{}`), ", user: u", "", 1)}},
		"a kubeconfig in JSON":      {cluster: kube.Cluster{Kubeconfig: `{"apiVersion":"v1","kind":"Config","current-context":"a","contexts":[{"name":"a","context":{"cluster":"a"}}],"clusters":[{"name":"a","cluster":{"server":"https://a"}}]}`}},
		"absolute paths":            {cluster: byUser(`{tokenFile: /var/run/token}`)},
		"a command of a kubeconfig": {cluster: byUser(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: /usr/bin/aws, interactiveMode: IfAvailable}}`)},

		"nothing":                             {want: ": has neither host nor kubeconfig: one of them says where its API server is"},
		"no host":                             {cluster: kube.Cluster{Token: "hunter2"}, want: "host: is missing: the URL of the API server"},
		"both ways":                           {cluster: kube.Cluster{Host: host, Kubeconfig: byUser(`{}`).Kubeconfig}, want: "host: cannot be set together with kubeconfig: a cluster has either a kubeconfig or a host"},
		"both ways, one unknown":              {cluster: byUser(`{}`), unknown: []string{"token"}, want: "token: cannot be set together with kubeconfig: a cluster has either a kubeconfig or a host"},
		"both ways, an unknown command":       {cluster: byUser(`{}`), unknown: []string{"exec"}, want: "exec: cannot be set together with kubeconfig: a cluster has either a kubeconfig or a host"},
		"a context of a host":                 {cluster: kube.Cluster{Host: host, Context: "x"}, want: "context: is for a kubeconfig, but this cluster has a host"},
		"a context of nothing":                {cluster: kube.Cluster{Context: "x"}, want: "kubeconfig: is missing: context chooses one of its contexts"},
		"no scheme":                           {cluster: kube.Cluster{Host: "api.example.com:6443"}, want: `host: must be a URL such as "https://api.example.com:6443"`},
		"no URL":                              {cluster: kube.Cluster{Host: "https://api example:x"}, want: `host: must be a URL such as "https://api.example.com:6443"`},
		"another scheme":                      {cluster: kube.Cluster{Host: "ssh://api.example.com"}, want: `host: has the scheme "ssh"; an API server is reached by https`},
		"no server":                           {cluster: kube.Cluster{Host: "https:///x"}, want: `host: has no name of a server; it must be a URL such as "https://api.example.com:6443"`},
		"a password in the host":              {cluster: kube.Cluster{Host: "https://me:hunter2@api"}, want: "host: has credentials in it; move them to token, client_certificate or exec"},
		"a query":                             {cluster: kube.Cluster{Host: "https://api?token=hunter2"}, want: `host: has a query or a fragment; it must be a URL such as "https://api.example.com:6443"`},
		"an invalid proxy":                    {cluster: kube.Cluster{Host: host, ProxyURL: "hunter2:3128"}, want: `proxy_url: must be a URL of http, https or socks5, such as "http://proxy.example.com:3128"`},
		"a server name with a port":           {cluster: kube.Cluster{Host: host, TLSServerName: "api:6443"}, want: "tls_server_name: must be the name of a server, without scheme and port"},
		"a CA without PEM":                    {cluster: kube.Cluster{Host: host, ClusterCACertificate: "hunter2"}, want: `cluster_ca_certificate: must be PEM, beginning with "-----BEGIN CERTIFICATE-----"`},
		"a CA in base64":                      {cluster: kube.Cluster{Host: host, ClusterCACertificate: inBase64(certificate)}, want: "cluster_ca_certificate: must be PEM, but is base64 of it; use base64decode()"},
		"a CA that is a key":                  {cluster: kube.Cluster{Host: host, ClusterCACertificate: key}, want: "cluster_ca_certificate: must be PEM of type CERTIFICATE, and is of type PRIVATE KEY"},
		"a CA of garbage":                     {cluster: kube.Cluster{Host: host, ClusterCACertificate: "-----BEGIN CERTIFICATE-----\naHVudGVyMg==\n-----END CERTIFICATE-----\n"}, want: "cluster_ca_certificate: has no certificate in it that can be read"},
		"a certificate without its key":       {cluster: kube.Cluster{Host: host, ClientCertificate: certificate}, want: "client_key: is missing: the private key of the client certificate"},
		"a key without its certificate":       {cluster: kube.Cluster{Host: host, ClientKey: key}, want: "client_certificate: is missing: the certificate of the client key"},
		"the key of another":                  {cluster: kube.Cluster{Host: host, ClientCertificate: certificate, ClientKey: otherKey}, want: "client_key: is not the private key of the client certificate"},
		"a line break":                        {cluster: kube.Cluster{Host: host, Token: "hunter2\n"}, want: "token: has white space around it or a line break in it, which no HTTP header can have; use trimspace()"},
		"a token by plain http":               {cluster: kube.Cluster{Host: "http://api", Token: "hunter2"}, want: "token: would be sent over plain http, where it can be read on the way; the host must begin with https://"},
		"no command":                          {cluster: kube.Cluster{Host: host, Exec: &kube.Exec{}}, want: "exec.command: is missing: the command that prints a credential\nexec.api_version: is missing: \"client.authentication.k8s.io/v1\" or \"client.authentication.k8s.io/v1beta1\""},
		"another version":                     {cluster: kube.Cluster{Host: host, Exec: &kube.Exec{APIVersion: "v1", Command: "aws", Env: map[string]string{"a=b": "hunter2"}}}, want: "exec.api_version: must be \"client.authentication.k8s.io/v1\" or \"client.authentication.k8s.io/v1beta1\"\nexec.env: has a name that no environment variable can have"},
		"several":                             {cluster: kube.Cluster{Host: "x", ClusterCACertificate: "x", ClientKey: "x"}, want: "host: must be a URL such as \"https://api.example.com:6443\"\ncluster_ca_certificate: must be PEM, beginning with \"-----BEGIN CERTIFICATE-----\"\nclient_key: must be PEM, beginning with \"-----BEGIN PRIVATE KEY-----\"\nclient_certificate: is missing: the certificate of the client key"},
		"a path":                              {cluster: kube.Cluster{Kubeconfig: "/home/me/.kube/config"}, want: "kubeconfig: must be the text of a kubeconfig, but is a single line; use file() to read the file at a path"},
		"no YAML":                             {cluster: kube.Cluster{Kubeconfig: "kind: Config\nhunter2: [\n"}, want: "kubeconfig: cannot be read: it is no YAML or JSON of the kind Config (line 2)"},
		"another kind":                        {cluster: kube.Cluster{Kubeconfig: "apiVersion: v1\nkind: Secret\n"}, want: "kubeconfig: cannot be read: it is no YAML or JSON of the kind Config"},
		"a text in place of a list":           {cluster: kube.Cluster{Kubeconfig: "apiVersion: v1\nkind: Config\nusers: hunter2\n"}, want: "kubeconfig: cannot be read: it is no YAML or JSON of the kind Config"},
		"aliases":                             {cluster: kube.Cluster{Kubeconfig: "a: &a hunter2\nb: [*a, *a]\n"}, want: "kubeconfig: has YAML aliases in it; replace them by their values"},
		"signs of aliases":                    {cluster: byUser(`{token: "hunter2&*a"}`)},
		"too large":                           {cluster: kube.Cluster{Kubeconfig: strings.Repeat("#\n", 5<<20)}, want: "kubeconfig: is larger than 8 MiB"},
		"no contexts":                         {cluster: kube.Cluster{Kubeconfig: "apiVersion: v1\nkind: Config\n"}, want: "kubeconfig: has no contexts; it must be the text of a kubeconfig"},
		"no current context":                  {cluster: kube.Cluster{Kubeconfig: strings.Replace(newKubeconfig(server, `{}`), "current-context: one", "current-context: ''", 1)}, want: "kubeconfig: has no current-context; set context to one of its contexts: one"},
		"an unknown current context":          {cluster: kube.Cluster{Kubeconfig: strings.Replace(newKubeconfig(server, `{}`), "current-context: one", "current-context: ones", 1)}, want: `kubeconfig: has the current-context "ones", and no such context; did you mean "one"?`},
		"a context missing in the kubeconfig": {cluster: kube.Cluster{Kubeconfig: newKubeconfig(server, `{}`), Context: "onee"}, want: `context: is "onee", which the kubeconfig does not have; did you mean "one"?`},
		"neither its cluster nor user":        {cluster: kube.Cluster{Kubeconfig: strings.Replace(newKubeconfig(server, `{}`), "{cluster: c, user: u}", "{cluster: cc, user: uu}", 1)}, want: "kubeconfig: has no cluster \"cc\", which its context \"one\" is about; did you mean \"c\"?\nkubeconfig: has no user \"uu\", as whom its context \"one\" signs in; did you mean \"u\"?"},
		"an unknown context":                  {cluster: kube.Cluster{Kubeconfig: "kind: Config\nx: [\n"}, unknown: []string{"context"}, want: "kubeconfig: cannot be read: it is no YAML or JSON of the kind Config (line 2)"},
		"no server in the kubeconfig":         {cluster: byCluster(`{proxy-url: "hunter2"}`), want: "kubeconfig: is wrong in its context \"one\": server is missing\nkubeconfig: is wrong in its context \"one\": proxy-url must be a URL of http, https or socks5, such as \"http://proxy.example.com:3128\""},
		"a CA of the kubeconfig":              {cluster: byCluster(`{server: "https://x", certificate-authority-data: aHVudGVyMg==}`), want: "kubeconfig: is wrong in its context \"one\": certificate-authority-data must be PEM, beginning with \"-----BEGIN CERTIFICATE-----\""},
		"invalid base64":                      {cluster: byCluster(`{server: "https://x", certificate-authority-data: "hunter2!"}`), want: "kubeconfig: cannot be read: it is no YAML or JSON of the kind Config"},
		"a relative CA":                       {cluster: byCluster(`{server: "https://x", certificate-authority: ca.pem}`), want: "kubeconfig: is wrong in its context \"one\": certificate-authority is the relative path \"ca.pem\", but the text of a kubeconfig has no folder; write an absolute path, or certificate-authority-data"},
		"relative files":                      {cluster: byUser(`{client-certificate: a.pem, client-key: ../a.key}`), want: "kubeconfig: is wrong in its context \"one\": client-certificate is the relative path \"a.pem\", but the text of a kubeconfig has no folder; write an absolute path, or client-certificate-data\nkubeconfig: is wrong in its context \"one\": client-key is the relative path \"../a.key\", but the text of a kubeconfig has no folder; write an absolute path, or client-key-data"},
		"a relative token file":               {cluster: byUser(`{tokenFile: token}`), want: "kubeconfig: is wrong in its context \"one\": tokenFile is the relative path \"token\", but the text of a kubeconfig has no folder; write an absolute path, or token"},
		"a relative command":                  {cluster: byUser(`{exec: {apiVersion: client.authentication.k8s.io/v1, command: ./token.sh}}`), want: "kubeconfig: is wrong in its context \"one\": exec.command is the relative path \"./token.sh\", but the text of a kubeconfig has no folder; write an absolute path, or a name that is in PATH"},
		"a command without all":               {cluster: byUser(`{exec: {apiVersion: client.authentication.k8s.io/v1alpha1, interactiveMode: Always}}`), want: "kubeconfig: is wrong in its context \"one\": exec.command is missing: the command that prints a credential\nkubeconfig: is wrong in its context \"one\": exec.apiVersion must be \"client.authentication.k8s.io/v1\" or \"client.authentication.k8s.io/v1beta1\"\nkubeconfig: is wrong in its context \"one\": exec.interactiveMode is \"Always\", but Terraform has no terminal for the command; it must be Never or IfAvailable"},
		"an auth provider":                    {cluster: byUser(`{auth-provider: {name: oidc, config: {id-token: hunter2}}}`), want: "kubeconfig: is wrong in its context \"one\": auth-provider is \"oidc\", but Flotilla does not run auth providers; use exec, with a command such as kubelogin"},
		"two ways to sign in":                 {cluster: byUser(`{token: hunter2, username: me, password: hunter2}`), want: "kubeconfig: is wrong in its context \"one\": token cannot be set together with username and password; use one of them"},
		"a certificate, no key":               {cluster: byUser(`{client-certificate-data: ` + inBase64(certificate) + `}`), want: "kubeconfig: is wrong in its context \"one\": client-key-data is missing: the private key of the client certificate"},
		"a key, no certificate":               {cluster: byUser(`{client-key-data: ` + inBase64(key) + `}`), want: "kubeconfig: is wrong in its context \"one\": client-certificate-data is missing: the certificate of the client key"},
		"a key of another":                    {cluster: byUser(`{client-certificate-data: ` + inBase64(certificate) + `, client-key-data: ` + inBase64(otherKey) + `}`), want: "kubeconfig: is wrong in its context \"one\": client-key-data is not the private key of the client certificate"},
		"a kubeconfig by plain http":          {cluster: byCluster(`{server: "http://x"}`), want: "kubeconfig: is wrong in its context \"one\": server is reached over plain http, where the credentials can be read on the way; it must begin with https://"},
		"groups without a user":               {cluster: byUser(`{token: hunter2, as-groups: [a]}`), want: "kubeconfig: is wrong in its context \"one\": as is missing: the user for as-uid, as-groups and as-user-extra"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var lines []string
			for _, problem := range c.cluster.Check(c.unknown...) {
				lines = append(lines, problem.Path+": "+problem.Message)
			}
			if got := strings.Join(lines, "\n"); got != c.want {
				t.Errorf("got\n%s\nwant\n%s", got, c.want)
			}
			if printed := fmt.Sprintf("%v %+v %#v %s %v", c.cluster, c.cluster, c.cluster, c.cluster, c.cluster.Exec); strings.Contains(
				printed,
				"hunter2",
			) {
				t.Errorf("the printed cluster contains its secret: %s", printed)
			}
		})
	}
}

// A query returns errors that Check cannot find, for the wrong cluster only.
func TestAWrongConfigurationHasAReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cluster kube.Cluster
		want    string
	}{
		"nothing":             {want: "its configuration is wrong: has neither host nor kubeconfig"},
		"a missing file":      {kube.Cluster{Kubeconfig: newKubeconfig(`{server: "https://x"}`, `{tokenFile: /nowhere/at/all}`)}, "its kubeconfig cannot be used: open /nowhere/at/all: no such file"},
		"a missing authority": {kube.Cluster{Kubeconfig: newKubeconfig(`{server: "https://x", certificate-authority: /nowhere/at/all}`, `{token: hunter2}`)}, "its kubeconfig cannot be used: "},
	} {
		if _, err := askOne(t, c.cluster, time.Minute); kube.ReasonOf(err) != kube.ReasonConfiguration ||
			!strings.HasPrefix(err.Error(), c.want) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzKubeconfig checks random kubeconfigs: each is accepted or has problems with a message.
func FuzzKubeconfig(f *testing.F) {
	certificate, key := kubetest.SelfSigned(f)
	f.Add(newKubeconfig(`{server: "https://x"}`, `{token: t}`), "")
	f.Add(
		newKubeconfig(
			`{server: "https://x", proxy-url: "http://a:b@c"}`,
			`{exec: {command: a, apiVersion: client.authentication.k8s.io/v1, env: [{name: a, value: b}]}}`,
		),
		"one",
	)
	f.Add(
		newKubeconfig(
			`{server: "x"}`,
			`{client-certificate-data: `+base64.StdEncoding.EncodeToString(
				[]byte(certificate),
			)+`, client-key-data: `+base64.StdEncoding.EncodeToString(
				[]byte(key),
			)+`}`,
		),
		"two",
	)
	f.Add(`{"kind":"Config","apiVersion":"v1","contexts":[{"name":""}]}`, "")
	f.Add("a: &a [*a]\n", "")
	f.Fuzz(func(t *testing.T, text, context string) {
		for _, problem := range (kube.Cluster{Kubeconfig: text, Context: context}).Check() {
			if problem.Message == "" || strings.Contains(problem.Message, "panic") {
				t.Errorf("got the problem %+v", problem)
			}
		}
	})
}
