package onboarding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// Cause is why an object cannot be put onto a cluster, or not be taken away.
type Cause string

// The causes of failures.
const (
	CauseForeign   Cause = "foreign"   // somebody else manages fields of it
	CauseRefused   Cause = "refused"   // the cluster does not take it
	CauseForbidden Cause = "forbidden" // the credentials may not do it
	CauseNoKind    Cause = "no kind"   // its kind is not there
	CauseTime      Cause = "time"      // what was waited for did not come
	CauseCluster   Cause = "cluster"   // the cluster does not answer
)

// Failure is why an object cannot be put onto a cluster, or not be taken away. It has no secret in it.
type Failure struct {
	Cause Cause
	Where agent.Where
	Part  agent.Part
	Name  string // of the object; "" for the cluster as a whole
	Text  string // a sentence without a full stop
	err   error
}

func (f *Failure) Error() string { return f.Text }
func (f *Failure) Unwrap() error { return f.err }

// Failures are several.
type Failures []*Failure

func (f Failures) Error() string {
	texts := make([]string, len(f))
	for i, one := range f {
		texts[i] = one.Text
	}
	return wording.Lines(texts, wording.Named)
}

// orNil makes an error of failures, ordered and each once; nil of none.
func (f Failures) orNil() error {
	f = slices.DeleteFunc(f, func(one *Failure) bool { return one == nil })
	if len(f) == 0 {
		return nil
	}
	slices.SortStableFunc(f, func(a, b *Failure) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Text, b.Text))
	})
	return slices.CompactFunc(f, func(a, b *Failure) bool { return a.Text == b.Text })
}

// FailuresOf are the failures that an error is made of.
func FailuresOf(err error) Failures {
	var several Failures
	var one *Failure
	switch {
	case err == nil:
		return nil
	case errors.As(err, &several):
		return several
	case errors.As(err, &one):
		return Failures{one}
	}
	return Failures{{Cause: CauseCluster, Text: err.Error(), err: err}}
}

// FindFailures finds what keeps objects from being applied on one cluster, from what was seen there: nothing is to be written
// where there is something.
func FindFailures(where agent.Where, objects []agent.Object, look Look) Failures {
	defined := definedKinds(objects)
	var found Failures
	missing := map[string][]string{}
	for i := range objects {
		object := &objects[i]
		id := object.ID()
		if id.Where != where {
			continue
		}
		seen := look.Seen[id]
		if seen.Err != nil {
			found = append(found, failureOf(object, seen.Err))
		}
		if kind := object.GroupVersionKind().GroupKind(); seen.NoKind && !defined[kind.String()] {
			missing[kind.String()] = append(missing[kind.String()], id.String())
			if len(missing[kind.String()]) == 1 {
				found = append(found, &Failure{
					Cause: CauseNoKind, Where: where, Part: object.Part, Name: id.String(),
					Text: fmt.Sprintf("the cluster has no kind %s of %s, which %s is: %s", object.GetKind(), object.GetAPIVersion(), id, installHint(kind.Group)),
				})
			}
		}
	}
	return found
}

// failureOf is the failure of an object.
func failureOf(object *agent.Object, err error) *Failure {
	id := object.ID()
	failure := &Failure{Cause: CauseCluster, Where: id.Where, Part: object.Part, Name: id.String(), Text: err.Error(), err: err}
	switch kube.ReasonOf(err) {
	case kube.ReasonConflict:
		managers, fields := split(kube.ConflictsOf(err))
		failure.Cause = CauseForeign
		failure.Text = fmt.Sprintf("%s: %s %s managed by %s", id, wording.List(fields, wording.Named),
			wording.OneOrMany(len(fields), "is", "are"), wording.List(quoted(managers), wording.Named))
	case kube.ReasonRefused, kube.ReasonTerminating, kube.ReasonNoNamespace:
		failure.Cause = CauseRefused
	case kube.ReasonForbidden:
		failure.Cause = CauseForbidden
	case kube.ReasonNoKind:
		failure.Cause = CauseNoKind
	}
	return failure
}

// definedKinds are the kinds that definitions among the objects bring: "Kustomization.kustomize.toolkit.fluxcd.io".
func definedKinds(objects []agent.Object) map[string]bool {
	defined := map[string]bool{}
	for i := range objects {
		if objects[i].Stage != agent.Definitions {
			continue
		}
		group, _, _ := unstructured.NestedString(objects[i].Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(objects[i].Object, "spec", "names", "kind")
		defined[kind+"."+group] = true
	}
	return defined
}

// installHint says what brings the kinds of a group.
func installHint(group string) string {
	switch {
	case strings.HasSuffix(group, ".toolkit.fluxcd.io"):
		return "Flux is not installed there, or without that controller; install = the output of `flux install --export` brings it"
	case group == "argoproj.io":
		return "Argo CD is not installed there; install = its manifests/install.yaml brings it"
	case group == "fleet.cattle.io":
		return "Rancher Fleet is not installed there; its charts fleet-crd and fleet bring it, or install = what `helm template` makes of them"
	}
	return "nothing in install defines it"
}

// asFailure is an error of a cluster as a failure. What is one already stays what it is.
func asFailure(where agent.Where, err error) error {
	var several Failures
	var one *Failure
	switch {
	case err == nil || errors.As(err, &several) || errors.As(err, &one):
		return err
	case errors.Is(err, context.DeadlineExceeded) && kube.ReasonOf(err) == kube.ReasonOther:
		return &Failure{Cause: CauseTime, Where: where, Text: "the time for it ran out", err: err}
	case errors.Is(err, context.Canceled) && kube.ReasonOf(err) == kube.ReasonOther:
		return &Failure{Cause: CauseTime, Where: where, Text: "it was interrupted", err: err}
	}
	return NewFailure(where, err)
}

// NewFailure is the failure of a cluster as a whole.
func NewFailure(where agent.Where, err error) *Failure {
	return &Failure{Cause: CauseCluster, Where: where, Text: err.Error(), err: err}
}

// Reason is why a cluster did not do what it was asked, where that is why.
func (f *Failure) Reason() kube.Reason { return kube.ReasonOf(f.err) }

// overdue is the failure of what was waited for until the time was over; that of the error where that is not why.
func overdue(ctx context.Context, where agent.Where, name, text string, err error) error {
	if err != nil && ctx.Err() == nil {
		return asFailure(where, err)
	}
	return &Failure{Cause: CauseTime, Where: where, Name: name, Text: text, err: ctx.Err()}
}
