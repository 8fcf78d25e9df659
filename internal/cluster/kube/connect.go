package kube

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"

	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

type config struct {
	rest *rest.Config
	exec *Exec
	// Only kubeconfigs have these.
	provideClusterInfo bool
	installHint        string
}

// configOf returns a cluster's configuration. It reads files of a kubeconfig.
func configOf(cluster Cluster) (*config, error) {
	if problems := cluster.Check(); len(problems) > 0 {
		return nil, failf(ReasonConfiguration, "its configuration is wrong: %s", strings.TrimSpace(problems[0].Path+" "+problems[0].Message))
	}
	if cluster.Kubeconfig == "" {
		made := &config{exec: cluster.Exec, rest: &rest.Config{
			Host: cluster.Host, BearerToken: cluster.Token,
			TLSClientConfig: rest.TLSClientConfig{
				ServerName: cluster.TLSServerName, CAData: normalPEM(cluster.ClusterCACertificate),
				CertData: normalPEM(cluster.ClientCertificate), KeyData: normalPEM(cluster.ClientKey),
			},
		}}
		if cluster.ProxyURL != "" {
			proxy, err := url.Parse(cluster.ProxyURL)
			if err != nil {
				return nil, failf(ReasonConfiguration, "proxy_url cannot be parsed")
			}
			made.rest.Proxy = http.ProxyURL(proxy)
		}
		return made, nil
	}
	read := readKubeconfig(cluster)
	if exec := read.user.Exec; exec != nil && exec.InteractiveMode == "" {
		exec.InteractiveMode = api.NeverExecInteractiveMode // client-go requires the field
	}
	restConfig, err := clientcmd.NewNonInteractiveClientConfig(*read.config, read.context, &clientcmd.ConfigOverrides{}, nil).ClientConfig()
	if err != nil {
		return nil, withAnswer(failf(ReasonConfiguration, "its kubeconfig cannot be used"), err.Error())
	}
	for _, data := range []*[]byte{&restConfig.CAData, &restConfig.CertData, &restConfig.KeyData} {
		*data = normalPEM(string(*data))
	}
	made := &config{rest: restConfig}
	if given := restConfig.ExecProvider; given != nil {
		made.exec, made.provideClusterInfo, made.installHint = execOf(given), given.ProvideClusterInfo, given.InstallHint
	}
	return made, nil
}

func normalPEM(text string) []byte { return []byte(armor.Normalize(text)) }

// readKubeconfig returns the selected context, or nil.
func readKubeconfig(cluster Cluster) *kubeconfig {
	var ignored problems
	parsed := parseKubeconfig(&ignored, cluster.Kubeconfig)
	if parsed == nil {
		return nil
	}
	return selectContext(&ignored, parsed, cluster.Context)
}

// newClient returns a client with its own connections, because clusters may trust different authorities.
func (c *config) newClient(options QueryOptions, scrubber func() secret.Scrubber) (*ClusterClient, error) {
	// Credentials go nowhere else: redirects are not followed.
	if _, err := access.Decide(access.Request{URL: c.rest.Host}, nil); err != nil {
		return nil, failf(ReasonConfiguration, "the URL of its API server cannot be used: %s", err)
	}
	restConfig := rest.CopyConfig(c.rest)
	restConfig.ExecProvider = nil // already run
	restConfig.UserAgent = options.UserAgent
	restConfig.BearerTokenFile = "" // already read
	tlsConfig, err := rest.TLSConfigFor(restConfig)
	if err != nil {
		return nil, withAnswer(failf(ReasonConfiguration, "its certificates cannot be used"), err.Error())
	}
	if tlsConfig == nil { // trust the machine's authorities
		tlsConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	// HTTP/1 takes less memory for sequential requests.
	tlsConfig.NextProtos = []string{"http/1.1"}
	connections := utilnet.SetOldTransportDefaults(&http.Transport{
		TLSClientConfig: tlsConfig, Proxy: restConfig.Proxy, DisableCompression: restConfig.DisableCompression,
		DialContext: (&net.Dialer{Timeout: connectDeadline}).DialContext, TLSHandshakeTimeout: connectDeadline,
		MaxResponseHeaderBytes: 64 << 10, MaxIdleConnsPerHost: parallelRequests,
	})
	signed, err := rest.HTTPWrappersForConfig(restConfig, connections)
	if err != nil {
		return nil, withAnswer(failf(ReasonConfiguration, "its credentials cannot be used"), err.Error())
	}
	server, err := url.Parse(restConfig.Host)
	if err != nil {
		return nil, failf(ReasonConfiguration, "the URL of its API server cannot be parsed")
	}
	requests := &requester{
		server: strings.TrimSuffix(server.String(), "/"),
		http: &http.Client{
			Transport: signed,
			// Another server must not get the credentials.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		close:    connections.CloseIdleConnections,
		scrubber: scrubber,
	}
	return &ClusterClient{requests, &discovery{requester: requests}}, nil
}

func (c Cluster) scrubber(further ...string) secret.Scrubber {
	found := append(slices.Clone(further), c.Token, c.ClientCertificate, c.Kubeconfig, passwordOf(c.ProxyURL))
	found = append(found, secret.KeyForms(c.ClientKey)...)
	if c.Exec != nil {
		found = append(found, c.Exec.secrets()...)
	}
	if c.Kubeconfig != "" {
		if read := readKubeconfig(c); read != nil {
			found = append(found, read.secrets()...)
		}
	}
	for _, text := range slices.Clone(found) {
		found = append(found, strings.TrimSpace(text))
	}
	return secret.NewScrubber(found)
}

// secrets returns values of the environment and of arguments, but no short words such as "true".
func (e *Exec) secrets() []string {
	var found []string
	for _, value := range e.Env {
		if len(value) > 5 {
			found = append(found, value)
		}
	}
	for _, argument := range e.Args {
		if _, value, isOption := strings.Cut(argument, "="); isOption {
			argument = value
		}
		if len(argument) > 15 {
			found = append(found, argument)
		}
	}
	return found
}

func passwordOf(text string) string {
	address, err := url.Parse(text)
	if err != nil || address.User == nil {
		return ""
	}
	password, _ := address.User.Password()
	return password
}
