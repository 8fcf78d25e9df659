package kube

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ClusterProblem is a mistake in the attributes of a cluster.
type ClusterProblem struct {
	Path    string // HCL path, such as "exec.command"; "" for the whole cluster
	Message string // clause without secrets; its subject is the attribute
}

type problems []ClusterProblem

func (p *problems) add(path, format string, arguments ...any) {
	*p = append(*p, ClusterProblem{Path: path, Message: fmt.Sprintf(format, arguments...)})
}

// apiVersions are the versions that client-go supports.
var apiVersions = []string{"client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"}

// Check finds all mistakes in the attributes of a cluster without connecting. unknown names attributes whose values are
// not known yet.
func (c Cluster) Check(unknown ...string) []ClusterProblem {
	var found problems
	isUnknown := func(attribute string) bool { return slices.Contains(unknown, attribute) }
	given := func(attribute, value string) bool { return value != "" || isUnknown(attribute) }
	byHost := c.attributesOfHost(given, isUnknown("exec"))
	switch {
	case given("kubeconfig", c.Kubeconfig) && len(byHost) > 0:
		found.add(byHost[0], "cannot be set together with kubeconfig: a cluster has either a kubeconfig or a host")
	case given("host", c.Host) && given("context", c.Context):
		found.add("context", "is for a kubeconfig, but this cluster has a host")
	case given("kubeconfig", c.Kubeconfig) || given("host", c.Host):
	case given("context", c.Context):
		found.add("kubeconfig", "is missing: context chooses one of its contexts")
	case len(byHost) > 0:
		found.add("host", "is missing: the URL of the API server")
	default:
		found.add("", "has neither host nor kubeconfig: one of them says where its API server is")
	}
	c.checkHost(&found, isUnknown)
	if c.Kubeconfig != "" {
		checkKubeconfig(&found, c.Kubeconfig, c.Context, isUnknown("context"))
	}
	return found
}

// attributesOfHost lists the set attributes that exclude a kubeconfig.
func (c Cluster) attributesOfHost(given func(attribute, value string) bool, unknownExec bool) []string {
	var found []string
	for _, attribute := range []struct{ name, value string }{
		{"host", c.Host}, {"cluster_ca_certificate", c.ClusterCACertificate}, {"token", c.Token},
		{"client_certificate", c.ClientCertificate}, {"client_key", c.ClientKey}, {"proxy_url", c.ProxyURL},
		{"tls_server_name", c.TLSServerName},
	} {
		if given(attribute.name, attribute.value) {
			found = append(found, attribute.name)
		}
	}
	if c.Exec != nil || unknownExec {
		found = append(found, "exec")
	}
	return found
}

func (c Cluster) checkHost(found *problems, isUnknown func(string) bool) {
	checkServer(found, "host", c.Host)
	checkProxy(found, "proxy_url", c.ProxyURL)
	checkCA(found, "cluster_ca_certificate", c.ClusterCACertificate)
	unknown := isUnknown("client_certificate") || isUnknown("client_key")
	hasCertificate, hasKey := unknown || c.ClientCertificate != "", unknown || c.ClientKey != ""
	checkPair(found, [2]string{"client_certificate", "client_key"}, c.ClientCertificate, c.ClientKey, hasCertificate, hasKey)
	if c.Token != strings.TrimSpace(c.Token) || strings.ContainsAny(c.Token, "\r\n") {
		found.add("token", "has white space around it or a line break in it, which no HTTP header can have; use trimspace()")
	}
	if plainServer(c.Host) {
		for _, credential := range []struct {
			name  string
			given bool
		}{{"token", c.Token != ""}, {"client_certificate", c.ClientCertificate != ""}, {"exec", c.Exec != nil}} {
			if credential.given {
				found.add(credential.name, "would be sent over plain http, where it can be read on the way; the host must begin with https://")
			}
		}
	}
	if strings.ContainsAny(c.TLSServerName, ":/ ") {
		found.add("tls_server_name", "must be the name of a server, without scheme and port")
	}
	if c.Exec != nil {
		c.Exec.check(found, "exec", isUnknown)
	}
}

func (e Exec) check(found *problems, at string, isUnknown func(string) bool) {
	if e.Command == "" && !isUnknown(at+".command") {
		found.add(at+".command", "is missing: the command that prints a credential")
	}
	checkAPIVersion(found, at+".api_version", e.APIVersion, isUnknown(at+".api_version"))
	for name := range e.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") {
			found.add(at+".env", "has a name that no environment variable can have")
		}
	}
}

func checkAPIVersion(found *problems, at, version string, unknown bool) {
	switch {
	case unknown || slices.Contains(apiVersions, version):
	case version == "":
		found.add(at, "is missing: %s", strings.Join(wording.Quoted(apiVersions), " or "))
	default:
		found.add(at, "must be %s", strings.Join(wording.Quoted(apiVersions), " or "))
	}
}

// checkServer checks the URL of an API server. Messages may contain it, but no password.
func checkServer(found *problems, at, server string) {
	if server == "" {
		return
	}
	address, err := url.Parse(server)
	switch {
	case err != nil || !strings.Contains(server, "://"):
		found.add(at, "must be a URL such as \"https://api.example.com:6443\"")
	case address.Scheme != "https" && address.Scheme != "http":
		found.add(at, "has the scheme %q; an API server is reached by https", address.Scheme)
	case address.Hostname() == "":
		found.add(at, "has no name of a server; it must be a URL such as \"https://api.example.com:6443\"")
	case address.User != nil:
		found.add(at, "has credentials in it; move them to token, client_certificate or exec")
	case address.RawQuery != "" || address.Fragment != "":
		found.add(at, "has a query or a fragment; it must be a URL such as \"https://api.example.com:6443\"")
	}
}

func checkProxy(found *problems, at, proxy string) {
	if proxy == "" {
		return
	}
	address, err := url.Parse(proxy)
	if err != nil || address.Hostname() == "" || !slices.Contains([]string{"http", "https", "socks5", "socks5h"}, address.Scheme) {
		found.add(at, "must be a URL of http, https or socks5, such as \"http://proxy.example.com:3128\"")
	}
}

func plainServer(server string) bool {
	address, err := url.Parse(server)
	if err != nil || address.Scheme != "http" {
		return false
	}
	ip := net.ParseIP(address.Hostname())
	return address.Hostname() != "localhost" && !ip.IsLoopback()
}

func checkPEM(found *problems, at, text, kind string) {
	if text != "" {
		if problem := pemProblem(text, kind); problem != "" {
			found.add(at, "%s", problem)
		}
	}
}

func checkPair(found *problems, at [2]string, certificate, key string, hasCertificate, hasKey bool) {
	checkPEM(found, at[0], certificate, "CERTIFICATE")
	checkPEM(found, at[1], key, "PRIVATE KEY")
	switch {
	case hasCertificate && !hasKey:
		found.add(at[1], "is missing: the private key of the client certificate")
	case hasKey && !hasCertificate:
		found.add(at[0], "is missing: the certificate of the client key")
	case certificate != "" && key != "" && pemProblem(certificate, "CERTIFICATE") == "" && pemProblem(key, "PRIVATE KEY") == "":
		if _, err := tls.X509KeyPair([]byte(armor.Normalize(certificate)), []byte(armor.Normalize(key))); err != nil {
			found.add(at[1], "is not the private key of the client certificate")
		}
	}
}

// pemProblem returns the problem of a text that must be PEM of a kind.
func pemProblem(text, kind string) string {
	block, _ := pem.Decode([]byte(armor.Normalize(text)))
	switch {
	case block != nil && strings.HasSuffix(block.Type, kind):
		return ""
	case block != nil:
		return fmt.Sprintf("must be PEM of type %s, and is of type %s", kind, wording.OneLine(block.Type))
	}
	if decoded, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil &&
		strings.HasPrefix(string(decoded), "-----BEGIN") {
		return "must be PEM, but is base64 of it; use base64decode()"
	}
	return fmt.Sprintf("must be PEM, beginning with \"-----BEGIN %s-----\"", kind)
}

// checkCA also parses a certificate, because otherwise no server would be trusted.
func checkCA(found *problems, at, text string) {
	if text == "" {
		return
	}
	if problem := pemProblem(text, "CERTIFICATE"); problem != "" {
		found.add(at, "%s", problem)
	} else if !x509.NewCertPool().AppendCertsFromPEM([]byte(armor.Normalize(text))) {
		found.add(at, "has no certificate in it that can be read")
	}
}

func withoutCredentials(text string) string {
	address, err := url.Parse(text)
	if err != nil {
		return "(no URL)"
	}
	return (&url.URL{Scheme: address.Scheme, Host: address.Host, Path: address.Path}).String()
}
