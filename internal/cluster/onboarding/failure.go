package onboarding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Cause says of which kind a failure is.
type Cause string

// The causes of failures.
const (
	CauseForeign   Cause = "foreign"   // another manager has fields of the object
	CauseOther     Cause = "other"     // it is of the agent of another cluster
	CauseRefused   Cause = "refused"   // the cluster does not take it
	CauseForbidden Cause = "forbidden" // the credentials may not do it
	CauseNoKind    Cause = "no kind"   // the cluster does not have the kind of the object
	CauseTime      Cause = "time"      // the time to wait ran out
	CauseCluster   Cause = "cluster"   // the cluster does not answer
)

// Failure says why an object cannot be applied to a cluster, or not be removed from it. It has no secret in it.
type Failure struct {
	Cause Cause
	Part  agent.Part
	Name  string // of the object; "" for the cluster as a whole
	Text  string // a sentence without a full stop
	err   error
}

func (f *Failure) Error() string { return f.Text }
func (f *Failure) Unwrap() error { return f.err }

// Failures are one error of several failures.
type Failures []*Failure

func (f Failures) Error() string {
	texts := make([]string, len(f))
	for i, one := range f {
		texts[i] = one.Text
	}
	return wording.Lines(texts, wording.Named)
}

// orNil returns the failures as an error, sorted and each once; nil where there are none.
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

// FailuresOf returns the failures in an error. Any other error is one of the cluster as a whole, or of the time.
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
	case errors.Is(err, context.DeadlineExceeded) && kube.ReasonOf(err) == kube.ReasonOther:
		return Failures{{Cause: CauseTime, Text: "the time for it ran out", err: err}}
	case errors.Is(err, context.Canceled) && kube.ReasonOf(err) == kube.ReasonOther:
		return Failures{{Cause: CauseTime, Text: "it was interrupted", err: err}}
	}
	return Failures{NewFailure(err)}
}

// FindFailures finds what prevents objects from being applied, from what was seen there. Where it finds
// anything, nothing may be written.
func FindFailures(objects []agent.Object, look Look) Failures {
	defined := definedKinds(objects)
	var found Failures
	missing := map[string]bool{}
	others := map[string][]string{} // objects by the cluster whose agent has them
	for i := range objects {
		object := &objects[i]
		id := object.ID()
		seen := look.Seen[id]
		if seen.OtherCluster != "" {
			others[seen.OtherCluster] = append(others[seen.OtherCluster], id.String())
			continue
		}
		if seen.Err != nil {
			found = append(found, failureOf(object, seen.Err))
		}
		if kind := object.GroupVersionKind().GroupKind(); seen.NoKind && !defined[kind.String()] && !missing[kind.String()] {
			missing[kind.String()] = true
			found = append(found, &Failure{
				Cause: CauseNoKind, Part: object.Part, Name: id.String(),
				Text: fmt.Sprintf(
					"the cluster has no kind %s of %s, which %s needs: %s",
					object.GetKind(),
					object.GetAPIVersion(),
					id,
					installHint(kind.Group),
				),
			})
		}
	}
	for _, other := range slices.Sorted(maps.Keys(others)) {
		ids := others[other]
		text := fmt.Sprintf("%s %s of the agent of cluster %q: the label %s says so", wording.List(ids, wording.Named),
			wording.OneOrMany(len(ids), "is", "are"), wording.OneLine(other), reconciler.ClusterLabel)
		found = append(found, &Failure{Cause: CauseOther, Name: ids[0], Text: text})
	}
	return found
}

// failureOf is the failure of an object.
func failureOf(object *agent.Object, err error) *Failure {
	id := object.ID()
	failure := &Failure{Cause: CauseCluster, Part: object.Part, Name: id.String(), Text: err.Error(), err: err}
	switch kube.ReasonOf(err) {
	case kube.ReasonConflict:
		managers, fields := split(kube.ConflictsOf(err))
		failure.Cause = CauseForeign
		failure.Text = fmt.Sprintf("%s: %s %s managed by %s", id, wording.List(fields, wording.Named),
			wording.OneOrMany(len(fields), "is", "are"), wording.List(wording.Quoted(managers), wording.Named))
	case kube.ReasonRefused, kube.ReasonTerminating, kube.ReasonNoNamespace:
		failure.Cause = CauseRefused
	case kube.ReasonForbidden:
		failure.Cause = CauseForbidden
	case kube.ReasonNoKind:
		failure.Cause = CauseNoKind
	}
	return failure
}

// definedKinds returns the kinds that definitions among the objects define, as "Kustomization.kustomize.toolkit.fluxcd.io".
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

// installHint says how to install the kinds of an API group.
func installHint(group string) string {
	if missing := reconciler.OfGroup(group); missing != nil {
		return missing.Agent.Missing
	}
	return "nothing in install defines it"
}

// NewFailure is the failure of a cluster as a whole.
func NewFailure(err error) *Failure {
	failure := &Failure{Cause: CauseCluster, Text: err.Error(), err: err}
	if kube.ReasonOf(err) == kube.ReasonForbidden {
		failure.Cause = CauseForbidden
	}
	return failure
}

// Reason is the reason in the cluster's answer; kube.ReasonOther where the failure is not about an answer.
func (f *Failure) Reason() kube.Reason { return kube.ReasonOf(f.err) }

// overdue is the failure after waiting until the time ran out, with a text about what was waited for. Where the time has
// not run out, it is the failure of err.
func overdue(ctx context.Context, name, text string, err error) error {
	if err != nil && ctx.Err() == nil {
		return err
	}
	return &Failure{Cause: CauseTime, Name: name, Text: text, err: ctx.Err()}
}
