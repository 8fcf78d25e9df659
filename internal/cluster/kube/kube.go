// Package kube connects to Kubernetes clusters, reads objects and applies them: many clusters at once, each with a
// deadline. It stores nothing on disk. Its errors contain no credential.
package kube

import (
	"fmt"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
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
