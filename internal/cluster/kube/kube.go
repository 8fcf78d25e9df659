// Package kube connects to Kubernetes clusters, reads objects and applies them: many clusters at once, each with a
// deadline, so a dead cluster does not delay the others. It has no knowledge of fleets and agents, watches nothing
// and stores nothing on disk.
//
// No error of this package contains a credential.
package kube

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Cluster is the access to a cluster: Host with related attributes, or a kubeconfig. The names and their meaning are
// those of the provider hashicorp/kubernetes.
type Cluster struct {
	Host                 string // URL of the API server
	ClusterCACertificate string // PEM; empty: the machine's authorities
	Token                string
	ClientCertificate    string // PEM
	ClientKey            string // PEM
	Exec                 *Exec
	ProxyURL             string // empty: from the environment variables
	TLSServerName        string

	Kubeconfig string // the text, not a path
	Context    string // in the kubeconfig; empty: its current one
}

// Exec is a command that prints a credential in the format of client.authentication.k8s.io.
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

// GoString returns String, so no verb of package fmt prints a credential.
func (c Cluster) GoString() string { return c.String() }

// String returns a description without secrets.
func (e Exec) String() string { return fmt.Sprintf("kube.Exec{%q}", e.Command) }

// GoString returns String.
func (e Exec) GoString() string { return e.String() }

// client-go writes warnings to standard error, which is Terraform's log.
func init() { klog.SetLogger(logr.Discard()) }
