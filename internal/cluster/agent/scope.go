package agent

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// clusterScoped are Kubernetes' own kinds.
var clusterScoped = []string{
	"APIService", "CSIDriver", "CSINode", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ClusterTrustBundle",
	"CustomResourceDefinition", "DeviceClass", "FlowSchema", "IPAddress", "IngressClass", "MutatingAdmissionPolicy",
	"MutatingAdmissionPolicyBinding", "MutatingWebhookConfiguration", "Namespace", "Node", "PersistentVolume", "PriorityClass",
	"PriorityLevelConfiguration", "ResourceSlice", "RuntimeClass", "ServiceCIDR", "StorageClass", "StorageVersion",
	"ValidatingAdmissionPolicy",
	"ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment", "VolumeAttributesClass",
}

// placeInNamespace sets the agent's namespace like `kubectl apply --namespace`, as Argo CD's manifests require.
// definitions tells whether defined kinds are namespaced.
func (r *renderer) placeInNamespace(u *unstructured.Unstructured, definitions map[string]bool) {
	kind := u.GroupVersionKind()
	isOwn := !strings.Contains(kind.Group, ".") || strings.HasSuffix(kind.Group, ".k8s.io")
	namespaced, isDefined := definitions[kind.GroupKind().String()]
	if u.GetNamespace() == "" && (isDefined && namespaced || !isDefined && isOwn && !slices.Contains(clusterScoped, kind.Kind)) {
		u.SetNamespace(r.settings.Namespace)
	}
}

func (r *renderer) placeDefined() {
	definitions := map[string]bool{}
	for _, o := range r.objects {
		if o.Part == Install && o.Stage == Definitions {
			group, _, _ := unstructured.NestedString(o.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(o.Object, "spec", "names", "kind")
			scope, _, _ := unstructured.NestedString(o.Object, "spec", "scope")
			definitions[kind+"."+group] = scope == "Namespaced"
		}
	}
	for _, o := range r.objects {
		if o.Part == Install {
			r.placeInNamespace(o.Unstructured, definitions)
		}
	}
}
