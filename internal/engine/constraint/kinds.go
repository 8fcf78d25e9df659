package constraint

import (
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

var kubernetesKinds = []string{
	"APIService", "CertificateSigningRequest", "ClusterRole", "ClusterRoleBinding", "ConfigMap", "ControllerRevision", "CronJob",
	"CSIDriver", "CSINode",
	"CustomResourceDefinition", "DaemonSet", "Deployment", "Endpoints", "EndpointSlice", "Event", "FlowSchema",
	"HorizontalPodAutoscaler", "Ingress",
	"IngressClass", "Job", "Lease", "LimitRange", "MutatingWebhookConfiguration", "Namespace", "NetworkPolicy", "Node", "PersistentVolume",
	"PersistentVolumeClaim", "Pod", "PodDisruptionBudget", "PodTemplate", "PriorityClass", "PriorityLevelConfiguration", "ReplicaSet",
	"ReplicationController", "ResourceQuota", "Role", "RoleBinding", "RuntimeClass", "Secret", "Service", "ServiceAccount",
	"StatefulSet", "StorageClass",
	"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding", "ValidatingWebhookConfiguration", "VolumeAttachment",
}

// Warnings reports probable typos: unknown kinds with a similar known one. Anybody can define kinds, hence no errors.
func Warnings(constraints []fleet.Constraint) fleet.Findings {
	known := slices.Clone(kubernetesKinds)
	for _, kind := range reconciler.Kinds() {
		known = append(known, kind.Kind)
	}
	var warnings fleet.Findings
	for _, constraint := range constraints {
		for _, kind := range constraint.Match.Kinds {
			name := kind[strings.LastIndex(kind, "/")+1:]
			if hint := fleet.DidYouMean(name, known); hint != "" && !slices.Contains(known, name) {
				warnings.Report(fleet.PathOf("constraints", constraint.Name).Attribute("match").Attribute("kinds"),
					"%q is no kind that Flotilla knows, so that the rule may hold for nothing%s", kind, hint)
			}
		}
	}
	return warnings
}
