package kube

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FuzzConflicted reads conflicts with random messages: each gives one conflict.
func FuzzConflicted(f *testing.F) {
	f.Add(`conflict with "kubectl-edit" using v1 at 2026-01-01T00:00:00Z`, ".spec.interval")
	f.Add(`conflict with "a \"b\"" with subresource "scale"`, ".data.a")
	f.Add(`conflict with ""`, "")
	f.Add(`something else`, ".")
	f.Fuzz(func(t *testing.T, message, field string) {
		status := metav1.Status{Details: &metav1.StatusDetails{Causes: []metav1.StatusCause{
			{Type: metav1.CauseTypeFieldManagerConflict, Message: message, Field: field},
		}}}
		conflicts := ConflictsOf(conflictError(&status, Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "a", Name: "b"}))
		if len(conflicts) != 1 || conflicts[0].Updated && !strings.Contains(message, " using ") {
			t.Errorf("%q gives %+v", message, conflicts)
		}
	})
}
