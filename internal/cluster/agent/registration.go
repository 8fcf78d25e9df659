package agent

import (
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

func (v *settingsValidator) checkRegistration() {
	at, to := "registration", v.settings.Registration
	if !v.settings.reconciler().OnHub() {
		if to != nil {
			v.problem(at, "is for the reconciler %q", reconciler.Hub().Name)
		}
		return
	}
	v.checkLabel("environment", v.settings.Environment, true)
	if to == nil {
		v.problem(at, "is required: how the hub reaches the cluster")
		return
	}
	if to.Secret != "" {
		if problem := fleet.CheckSubdomainName(to.Secret); problem != "" {
			v.problem(at+".secret", "%q %s", to.Secret, problem)
		}
		if !reflect.DeepEqual(*to, Registration{Secret: to.Secret}) {
			v.problem(at+".secret", "cannot be set together with other attributes: the Secret has all of them")
		}
		return
	}
	if parsed, err := url.Parse(to.Server); err != nil || parsed.Scheme != "https" || parsed.Host == "" || parsed.User != nil {
		v.problem(at+".server", "must be the https:// URL of the cluster's API, as the hub reaches it")
	} else if name := parsed.Hostname(); name == "localhost" || name == "kubernetes.default.svc" {
		v.problem(at+".server", "is the name by which every cluster reaches itself: give the URL by which the hub reaches this one")
	}
	ways := countTrue(to.Token != "", to.ClientCert != "" || to.ClientKey != "", to.Exec != nil, to.AWS != nil)
	switch {
	case ways == 0:
		v.problem(at, "has none of token, client_certificate, exec and aws, of which the hub needs one")
	case ways > 1:
		v.problem(at, "has more than one of token, client_certificate, exec and aws")
	case (to.ClientCert == "") != (to.ClientKey == ""):
		v.problem(at, "has only one of client_certificate and client_key")
	}
	switch {
	case to.Insecure && to.CACertificate != "":
		v.problem(at+".insecure", "cannot be set together with cluster_ca_certificate")
	case to.CACertificate != "" && !strings.Contains(to.CACertificate, "-----BEGIN CERTIFICATE-----"):
		v.problem(at+".cluster_ca_certificate", "is no PEM text of certificates; cloud providers often give it in base64, so decode it first")
	}
	v.checkLabels(at+".labels", to.Labels)
}

func (v *settingsValidator) checkLabels(at string, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path := at + "[" + strconv.Quote(key) + "]"
		if problem := fleet.CheckLabelKey(key); problem != "" {
			v.problem(path, "%s", problem)
		}
		if problem := fleet.CheckLabelValue(labels[key]); problem != "" {
			v.problem(path, "%s", problem)
		}
		if strings.HasPrefix(key, reconciler.LabelPrefix) || strings.HasPrefix(reconciler.Hub().Agent.Registers, key+"=") {
			v.problem(path, "is a label that Flotilla sets")
		}
	}
}
