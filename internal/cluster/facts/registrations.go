package facts

import (
	"encoding/base64"
	"fmt"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// ReadSecret reads name, server and labels from Argo CD's Secret of a cluster, and no credentials or annotations, which
// may repeat the whole Secret, as kubectl's do. ok is false if no cluster can have the name.
func ReadSecret(secret *unstructured.Unstructured) (r Registration, ok bool) {
	r = Registration{From: ArgoCD, Object: fmt.Sprintf("Secret %s/%s", secret.GetNamespace(), secret.GetName()), Facts: map[string]any{}}
	if r.Name = dataOf(secret, "name"); r.Name == "" {
		r.Name = secret.GetName()
	}
	// A URL may have credentials.
	if server, err := url.Parse(dataOf(secret, "server")); err == nil && server.Host != "" {
		r.Facts["server"] = textOf((&url.URL{Scheme: server.Scheme, Host: server.Host, Path: server.Path}).String())
	}
	labels := secret.GetLabels()
	delete(labels, reconciler.SecretType)
	r.Facts["registered_labels"] = textsByName(labels)
	return r, textOf(r.Name) != ""
}

func dataOf(secret *unstructured.Unstructured, key string) string {
	encoded, _, _ := unstructured.NestedString(secret.Object, "data", key)
	text, _ := base64.StdEncoding.DecodeString(encoded) // unreadable data is absent
	return textOf(string(text))
}

// ReadClusterProfile reads a ClusterProfile of multicluster.x-k8s.io.
func ReadClusterProfile(profile *unstructured.Unstructured) (r Registration, ok bool) {
	object := fmt.Sprintf("ClusterProfile %s/%s", profile.GetNamespace(), profile.GetName())
	r = Registration{Name: profile.GetName(), From: ClusterProfiles, Object: object, Facts: map[string]any{}}
	version, _, _ := unstructured.NestedString(profile.Object, "status", "version", "kubernetes")
	addVersion(r.Facts, version)
	r.Facts["registered_labels"] = textsByName(profile.GetLabels())
	properties := map[string]string{}
	value, _, _ := unstructured.NestedFieldNoCopy(profile.Object, "status", "properties")
	given, _ := value.([]any)
	for _, one := range given {
		property, _ := one.(map[string]any)
		name, _ := property["name"].(string)
		properties[name], _ = property["value"].(string)
	}
	r.Facts["properties"] = textsByName(properties)
	healthy := conditionOf(profile, "ControlPlaneHealthy")
	r.Status = verdict.Status{Since: healthy.since}
	switch healthy.status {
	case "True":
		r.Status.Verdict, r.Status.Message = verdict.Ready, object+" says that the control plane is healthy"
	case "False":
		r.Status.Verdict, r.Status.Message = verdict.Progressing, fmt.Sprintf(
			"%s says that the control plane is not healthy: %s",
			object,
			wording.OneLine(healthy.reason+" "+healthy.message),
		)
	default:
		r.Status.Verdict, r.Status.Message = verdict.Unknown, object+" does not say whether the control plane is healthy"
	}
	return r, textOf(r.Name) != ""
}
