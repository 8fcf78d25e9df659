package onboarding

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Cause classifies failures.
type Cause string

// The causes of failures.
const (
	CauseForeign   Cause = "foreign"
	CauseOther     Cause = "other"
	CauseRefused   Cause = "refused"
	CauseForbidden Cause = "forbidden"
	CauseNoKind    Cause = "no kind"
	CauseNoSecret  Cause = "no secret" // that registers the cluster at a hub
	CauseUnsuited  Cause = "unsuited"  // Secret of a hub
	CauseTime      Cause = "time"
	CauseCluster   Cause = "cluster"
)

// Failure explains why an object cannot be applied or removed. It contains no secret.
type Failure struct {
	Cause Cause
	Part  agent.Part
	Name  string // of the object; "" for the cluster as a whole
	Text  string // a sentence without a full stop
	err   error
}

func (f *Failure) Error() string { return f.Text }
func (f *Failure) Unwrap() error { return f.err }

// Failures is several failures as one error.
type Failures []*Failure

func (f Failures) Error() string {
	texts := make([]string, len(f))
	for i, one := range f {
		texts[i] = one.Text
	}
	return wording.Lines(texts, wording.Named)
}

// orNil returns the failures sorted and without duplicates.
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

// FailuresOf returns the failures in an error. Any other error is a failure of the whole cluster, or a timeout.
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

// FindFailures returns the reasons why inspected objects cannot be applied.
func FindFailures(objects []agent.StagedObject, look Inspection) Failures {
	defined := definedKinds(objects)
	var found Failures
	missing := map[string]bool{}
	others := map[string][]string{} // by the cluster whose agent has them
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
		} else if failure := findUnregistered(object, seen.Live); failure != nil {
			found = append(found, failure)
		}
		if kind := object.GroupVersionKind().GroupKind(); seen.NoKind && !defined[kind.String()] && !missing[kind.String()] {
			missing[kind.String()] = true
			hint := "nothing in install defines it"
			if by := reconciler.OfGroup(kind.Group); by != nil {
				hint = by.Agent.Missing
			}
			text := fmt.Sprintf("the cluster has no kind %s of %s, which %s needs: %s", object.GetKind(), object.GetAPIVersion(), id, hint)
			found = append(found, &Failure{Cause: CauseNoKind, Part: object.Part, Name: id.String(), Text: text})
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

// findUnregistered checks that others' Secret registers the cluster of its label at a hub.
func findUnregistered(object *agent.StagedObject, live *unstructured.Unstructured) *Failure {
	cluster := object.GetLabels()[reconciler.ClusterLabel]
	if !object.Partial || cluster == "" {
		return nil
	}
	failure := &Failure{Cause: CauseUnsuited, Part: object.Part, Name: object.ID().String()}
	if live == nil {
		failure.Cause, failure.Text = CauseNoSecret, failure.Name+" does not exist"
		return failure
	}
	label, value, _ := strings.Cut(reconciler.Hub().Agent.Registers, "=")
	text, _, _ := unstructured.NestedString(live.Object, "data", "name")
	name, _ := base64.StdEncoding.DecodeString(text)
	switch {
	case live.GetLabels()[label] != value:
		failure.Text = fmt.Sprintf("%s registers no cluster: it has no label %s=%s", failure.Name, label, value)
	case render.LabelValue(string(name)) != cluster:
		failure.Text = fmt.Sprintf("%s registers another cluster, with the name %q", failure.Name, wording.OneLine(string(name)))
	default:
		return nil
	}
	return failure
}

func failureOf(object *agent.StagedObject, err error) *Failure {
	id := object.ID()
	failure := &Failure{Cause: CauseCluster, Part: object.Part, Name: id.String(), Text: err.Error(), err: err}
	switch kube.ReasonOf(err) {
	case kube.ReasonConflict:
		managers, fields := splitConflicts(kube.ConflictsOf(err))
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

func definedKinds(objects []agent.StagedObject) map[string]bool {
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

// NewFailure returns a failure of the whole cluster.
func NewFailure(err error) *Failure {
	failure := &Failure{Cause: CauseCluster, Text: err.Error(), err: err}
	if kube.ReasonOf(err) == kube.ReasonForbidden {
		failure.Cause = CauseForbidden
	}
	return failure
}

// Reason returns the reason in the cluster's answer.
func (f *Failure) Reason() kube.Reason { return kube.ReasonOf(f.err) }

// timeoutError returns err, or a failure with text if the context has ended.
func timeoutError(ctx context.Context, name, text string, err error) error {
	if err != nil && ctx.Err() == nil {
		return err
	}
	return &Failure{Cause: CauseTime, Name: name, Text: text, err: ctx.Err()}
}
