package kube

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzConflicted gives the words of a conflict at random: whatever they are, there is a manager, and nothing breaks.
func FuzzConflicted(f *testing.F) {
	f.Add(`conflict with "kubectl-edit" using v1 at 2026-01-01T00:00:00Z`, ".spec.interval")
	f.Add(`conflict with "a \"b\"" with subresource "scale"`, ".data.a")
	f.Add(`conflict with ""`, "")
	f.Add(`something else`, ".")
	f.Fuzz(func(t *testing.T, message, field string) {
		said := metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldManagerConflict, Message: message, Field: field},
		}}}
		conflicts := ConflictsOf(conflictError(&said, Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}))
		if len(conflicts) != 1 || conflicts[0].Updated && !strings.Contains(message, " using ") {
			t.Errorf("%q gives %+v", message, conflicts)
		}
	})
}
