// Package kube connects to Kubernetes clusters, reads objects from them and applies objects to them: many clusters at
// once, each with a deadline, so that a dead cluster does not delay the others. It knows nothing of fleets and agents,
// watches nothing and keeps nothing on disk.
//
// No error that leaves this package has a credential in it.
package kube

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// Cluster says how a cluster is reached, in one of two ways: by Host and what goes with it, or by a kubeconfig.
// The names and their meaning are those of the provider hashicorp/kubernetes.
type Cluster struct {
	Host                 string // URL of the API server
	ClusterCACertificate string // PEM; empty: the machine's
	Token                string
	ClientCertificate    string // PEM
	ClientKey            string // PEM
	Exec                 *Exec
	ProxyURL             string // empty: that of the environment variables
	TLSServerName        string

	Kubeconfig string // the text, not a path
	Context    string // of the kubeconfig; empty: its current one
}

// Exec is a command that prints a credential in the format of client.authentication.k8s.io.
type Exec struct {
	APIVersion string
	Command    string
	Args       []string
	Env        map[string]string
}

// String has nothing in it that is secret.
func (c Cluster) String() string {
	if c.Kubeconfig != "" {
		return fmt.Sprintf("kube.Cluster{kubeconfig, context %q}", c.Context)
	}
	return "kube.Cluster{" + withoutCredentials(c.Host) + "}"
}

// GoString is String, so that no verb of package fmt prints a credential.
func (c Cluster) GoString() string { return c.String() }

// String has nothing in it that is secret.
func (e Exec) String() string { return fmt.Sprintf("kube.Exec{%q}", e.Command) }

// GoString is String.
func (e Exec) GoString() string { return e.String() }

// client-go writes warnings to standard error, which is Terraform's log.
func init() { klog.SetLogger(logr.Discard()) }
