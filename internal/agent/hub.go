package agent

import (
	"encoding/json"
	"net/url"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/render"
)

const (
	// forHub is the pattern of the files in a folder that the hub's Argo CD applies on the hub. All others are for the clusters.
	forHub           = "*/reconciler.*"
	environmentLabel = "flotilla.dev/environment"
)

// hub registers the cluster at a hub whose Argo CD follows the folders. It applies namespaces and configuration from a
// folder to the cluster, and reconciler objects to the hub. All clusters of a type share the objects that follow the
// folder of the type.
func (r *renderer) hub() {
	s := r.settings
	r.namespace(s.Namespace)
	r.registration()
	r.argoRepository()
	r.argoProject(map[string]any{"namespace": "*", "server": "*"}).Shared = true
	hosts := s.hosts()
	hub := map[string]any{"server": inCluster, "namespace": s.Namespace}

	ofType, name := hosts[0], r.hubName(s.ClusterType)
	for _, root := range []*Object{
		r.applicationSet(name, ofType),
		r.application(name+"-hub", ofType, map[string]any{"recurse": true, "include": forHub}, hub),
	} {
		root.Shared, root.Environment = true, render.LabelValue(s.Environment)
		labels := root.GetLabels()
		delete(labels, clusterLabel)
		root.SetLabels(labels)
	}
	own, name := hosts[1], r.hubName("clusters-"+s.Cluster)
	r.subscribe(r.application(name, own, map[string]any{"recurse": true, "exclude": forHub},
		map[string]any{"name": s.Cluster, "namespace": "default"}))
	r.application(name+"-hub", own, map[string]any{"recurse": true, "include": forHub}, hub)
}

// hubName is the name of an object on a hub that is for a host. It has the environment in it, since a hub may have
// clusters of several environments.
func (r *renderer) hubName(host string) string {
	return render.LabelValue(r.settings.Name + "-" + r.settings.Environment + "-" + host)
}

// applicationSet adds an ApplicationSet that generates, for each cluster of the type, an Application for what belongs on the cluster.
func (r *renderer) applicationSet(name string, host host) *Object {
	s := r.settings
	template := map[string]any{
		"metadata": map[string]any{
			"name":       name + "-{{.nameNormalized}}",
			"finalizers": []any{argoFinalizer},
			"labels": map[string]any{
				"app.kubernetes.io/managed-by": "flotilla", clusterTypeLabel: render.LabelValue(s.ClusterType),
				render.HostLabel: render.LabelValue(host.name),
			},
		},
		"spec": r.applicationSpec(host, map[string]any{"recurse": true, "exclude": forHub}, map[string]any{"name": "{{.name}}", "namespace": "default"}),
	}
	if annotations := r.subscription(); annotations != nil {
		template["metadata"].(map[string]any)["annotations"] = annotations
	}
	o := r.add(Root, argoAPI, "ApplicationSet", s.Namespace, name, map[string]any{"spec": map[string]any{
		"goTemplate": true, "goTemplateOptions": []any{"missingkey=error"},
		"generators": []any{map[string]any{"clusters": map[string]any{"selector": map[string]any{"matchLabels": map[string]any{
			environmentLabel: render.LabelValue(s.Environment), clusterTypeLabel: render.LabelValue(s.ClusterType),
		}}}}},
		"template": template,
	}})
	o.Reports = true
	r.mark(o)
	return o
}

// registration adds the Secret that registers the cluster at the hub.
func (r *renderer) registration() {
	s, to := r.settings, r.settings.Registration
	tls := map[string]any{"insecure": to.Insecure}
	text := func(config map[string]any, key, value string) {
		if value != "" {
			config[key] = value
		}
	}
	text(tls, "serverName", to.TLSServerName)
	for key, pem := range map[string]string{"caData": to.CACertificate, "certData": to.ClientCert, "keyData": to.ClientKey} {
		if pem != "" {
			tls[key] = []byte(pem)
		}
	}
	config := map[string]any{"tlsClientConfig": tls}
	text(config, "bearerToken", to.Token)
	if to.Exec != nil {
		exec := map[string]any{"command": to.Exec.Command, "apiVersion": to.Exec.APIVersion}
		if len(to.Exec.Args) > 0 {
			exec["args"] = to.Exec.Args
		}
		if len(to.Exec.Env) > 0 {
			exec["env"] = to.Exec.Env
		}
		config["execProviderConfig"] = exec
	}
	if to.AWS != nil {
		aws := map[string]any{"clusterName": to.AWS.ClusterName}
		text(aws, "roleARN", to.AWS.RoleARN)
		config["awsAuthConfig"] = aws
	}
	encoded, err := json.Marshal(config) // sorts the keys
	if err != nil {
		r.problem("registration", "%s", err)
		return
	}
	labels := map[string]string{}
	for key, value := range to.Labels {
		labels[key] = value
	}
	labels[argoSecret] = "cluster"
	labels[environmentLabel] = render.LabelValue(s.Environment)
	r.mark(r.secret(s.Namespace, r.hubName("clusters-"+s.Cluster), labels, map[string]string{
		"name": s.Cluster, "server": strings.TrimRight(to.Server, "/"), "config": string(encoded),
	}))
}

// checkRegistration checks whether the hub could reach the cluster.
func (r *renderer) checkRegistration() {
	at, to := "registration", r.settings.Registration
	if !r.settings.of().OnHub() {
		if to != nil {
			r.problem(at, "is for the reconciler %q", ArgoCDHub)
		}
		return
	}
	r.label("environment", r.settings.Environment, true)
	if to == nil {
		r.problem(at, "is required: how the hub reaches the cluster")
		return
	}
	if parsed, err := url.Parse(to.Server); err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil {
		r.problem(at+".server", "must be the https:// URL of the cluster's API, as the hub reaches it")
	} else if name := parsed.Hostname(); name == "localhost" || name == "kubernetes.default.svc" {
		r.problem(at+".server", "is the name by which every cluster reaches itself: give the URL by which the hub reaches this one")
	}
	ways := 0
	for _, given := range []bool{to.Token != "", to.ClientCert != "" || to.ClientKey != "", to.Exec != nil, to.AWS != nil} {
		if given {
			ways++
		}
	}
	switch {
	case ways == 0:
		r.problem(at, "has none of token, client_certificate, exec and aws, of which the hub needs one")
	case ways > 1:
		r.problem(at, "has more than one of token, client_certificate, exec and aws")
	case (to.ClientCert == "") != (to.ClientKey == ""):
		r.problem(at, "has only one of client_certificate and client_key")
	}
	switch {
	case to.Insecure && to.CACertificate != "":
		r.problem(at+".insecure", "cannot be set together with cluster_ca_certificate")
	case to.CACertificate != "" && !strings.Contains(to.CACertificate, "-----BEGIN CERTIFICATE-----"):
		r.problem(at+".cluster_ca_certificate", "is no PEM text of certificates; cloud providers often give it in base64, so decode it first")
	}
	r.checkLabels(at+".labels", to.Labels)
}

func (r *renderer) checkLabels(at string, labels map[string]string) {
	for _, key := range sortedKeys(labels) {
		path := at + "[" + quote(key) + "]"
		if problem := fleet.CheckLabelKey(key); problem != "" {
			r.problem(path, "%s", problem)
		}
		if problem := fleet.CheckLabelValue(labels[key]); problem != "" {
			r.problem(path, "%s", problem)
		}
		if strings.HasPrefix(key, "flotilla.dev/") || key == argoSecret {
			r.problem(path, "is a label that Flotilla sets")
		}
	}
}
