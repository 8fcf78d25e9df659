// Package kube connects to Kubernetes clusters, reads objects and applies them: many clusters at once, each with a
// deadline. It stores nothing on disk. Its errors contain no credential.
package kube

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/parallel"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// Cluster is the access to a cluster: Host with related attributes, or a kubeconfig, as in the provider
// hashicorp/kubernetes.
type Cluster struct {
	Host                 string // of the API server
	ClusterCACertificate string // PEM; "": the machine's authorities
	Token                string
	ClientCertificate    string // PEM
	ClientKey            string // PEM
	Exec                 *Exec
	ProxyURL             string // "": from the environment
	TLSServerName        string

	Kubeconfig string // not a path
	Context    string // in the kubeconfig; "": its current one
}

// Exec prints a credential in the format of client.authentication.k8s.io.
type Exec struct {
	APIVersion string
	Command    string
	Args       []string
	Env        map[string]string
}

// String returns a description without secrets.
func (c Cluster) String() string {
	if c.Kubeconfig != "" {
		return fmt.Sprintf("kube.Cluster{kubeconfig, context %q}", c.Context)
	}
	return "kube.Cluster{" + withoutCredentials(c.Host) + "}"
}

// GoString returns String, so package fmt never prints a credential.
func (c Cluster) GoString() string { return c.String() }

// String returns a description without secrets.
func (e Exec) String() string { return fmt.Sprintf("kube.Exec{%q}", e.Command) }

// GoString returns String.
func (e Exec) GoString() string { return e.String() }

// client-go writes warnings to standard error, which is Terraform's log.
func init() { klog.SetLogger(logr.Discard()) }

// QueryOptions configure queries; zero values are defaults.
type QueryOptions struct {
	Deadline  time.Duration // of one cluster: exec command, connection, all answers
	Parallel  int           // clusters at once
	UserAgent string        // in the audit logs of API servers
}

// The defaults of QueryOptions.
const (
	DefaultDeadline = 10 * time.Second
	DefaultParallel = 256
)

// connectDeadline bounds the connection, and then the TLS handshake, so unreachable clusters do not delay others.
const connectDeadline = 4 * time.Second

func (o QueryOptions) withDefaults() QueryOptions {
	if o.Deadline <= 0 {
		o.Deadline = DefaultDeadline
	}
	if o.Parallel <= 0 {
		o.Parallel = DefaultParallel
	}
	o.UserAgent = cmp.Or(o.UserAgent, "terraform-provider-flotilla")
	return o
}

// Answer is the answer of one cluster, up to its error.
type Answer[T any] struct {
	Value T
	Err   error // a *RequestError
}

// QueryAll queries all clusters in parallel and returns the answers by name. query must end with its context.
func QueryAll[T any](
	ctx context.Context,
	clusters map[string]Cluster,
	options QueryOptions,
	query func(ctx context.Context, name string, client *ClusterClient) (T, error),
) map[string]Answer[T] {
	options = options.withDefaults()
	names := slices.Sorted(maps.Keys(clusters))
	answers := make([]Answer[T], len(names))
	running := newCommands()
	parallel.EachAtMost(len(names), options.Parallel, func(i int) {
		name := names[i]
		answers[i].Err = queryOne(ctx, clusters[name], options, running, func(ctx context.Context, client *ClusterClient) (err error) {
			answers[i].Value, err = query(ctx, name, client)
			return err
		})
	})
	found := make(map[string]Answer[T], len(names))
	for i, name := range names {
		found[name] = answers[i]
	}
	return found
}

// QueryOne queries one cluster. Its error is a *RequestError.
func QueryOne(ctx context.Context, cluster Cluster, options QueryOptions, query func(context.Context, *ClusterClient) error) error {
	return queryOne(ctx, cluster, options.withDefaults(), newCommands(), query)
}

func queryOne(
	whole context.Context,
	cluster Cluster,
	options QueryOptions,
	running *commands,
	query func(context.Context, *ClusterClient) error,
) error {
	var printed []string
	scrubber := sync.OnceValue(func() secret.Scrubber { return cluster.scrubber(printed...) })
	if whole.Err() != nil {
		return publicError(whole, whole, whole.Err(), options, scrubber)
	}
	connection, err := configOf(cluster)
	if err != nil {
		return publicError(whole, whole, err, options, scrubber)
	}
	if connection.exec != nil {
		// The cluster's deadline starts once the command has a free place.
		if err := running.slots.Acquire(whole, 1); err != nil {
			return publicError(whole, whole, err, options, scrubber)
		}
	}
	ctx, cancel := context.WithTimeout(whole, options.Deadline)
	defer cancel()
	if connection.exec != nil {
		printed, err = running.signIn(ctx, connection)
		running.slots.Release(1)
		if err != nil {
			return publicError(whole, ctx, err, options, scrubber)
		}
	}
	client, err := connection.newClient(options, scrubber)
	if err != nil {
		return publicError(whole, ctx, err, options, scrubber)
	}
	defer client.close()
	return publicError(whole, ctx, query(ctx, client), options, scrubber)
}

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
	return &ClusterClient{requests, &discovery{
		requester: requests, versions: map[ResourceKind]string{}, resources: map[string]map[string]Resource{},
	}}, nil
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
