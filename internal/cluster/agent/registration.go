package agent

import (
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// checkRegistration checks whether the hub could reach the cluster.
func (r *renderer) checkRegistration() {
	at, to := "registration", r.settings.Registration
	if !r.settings.of().OnHub() {
		if to != nil {
			r.problem(at, "is for the reconciler %q", reconciler.Hub().Name)
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
	ways := count(to.Token != "", to.ClientCert != "" || to.ClientKey != "", to.Exec != nil, to.AWS != nil)
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
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path := at + "[" + strconv.Quote(key) + "]"
		if problem := fleet.CheckLabelKey(key); problem != "" {
			r.problem(path, "%s", problem)
		}
		if problem := fleet.CheckLabelValue(labels[key]); problem != "" {
			r.problem(path, "%s", problem)
		}
		if strings.HasPrefix(key, reconciler.LabelPrefix) || strings.HasPrefix(reconciler.Hub().Agent.Registers, key+"=") {
			r.problem(path, "is a label that Flotilla sets")
		}
	}
}
