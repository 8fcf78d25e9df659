package onboarding_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/kubetest"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/reliabilitytest"
)

// TestReliabilityAgentsConverge changes, deletes and takes over objects at random, replaces the cluster by an empty one,
// loses the state, and creates objects of others. The next apply converges, or names the conflicting manager and writes
// nothing. No object of others ever changes.
func TestReliabilityAgentsConverge(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true})
	count := reliabilitytest.Count(2, 1000)
	var steps, applies, conflicts, next atomic.Int64
	begin := uint64(time.Now().UnixNano())
	withClient(t, server, 3*time.Hour, func(ctx context.Context, cluster onboarding.ClusterAPI) {
		var workers sync.WaitGroup
		for range min(6, count) {
			workers.Go(func() {
				for !t.Failed() {
					number := next.Add(1)
					if number > int64(count) {
						return
					}
					s := newSequence(server.Client(), cluster, begin, uint64(number))
					err := s.run(ctx)
					steps.Add(int64(len(s.history)))
					applies.Add(int64(s.applies))
					conflicts.Add(int64(s.conflicts))
					if err != nil {
						t.Errorf("sequence %d of seed %d: %v\n%s", number, begin, err, strings.Join(s.history, "\n"))
					}
				}
			})
		}
		workers.Wait()
	})
	reliabilitytest.Report(
		t,
		"60-agents",
		"Objects of agents changed, deleted and taken over, clusters replaced, states lost",
		"Kubernetes API server",
		fmt.Sprintf("%d sequences, %d steps", count, steps.Load()),
		fmt.Sprintf(
			"%d applies, of which %d named a conflict and all others converged; no object of others changed",
			applies.Load(),
			conflicts.Load(),
		),
	)
}

// sequence is one cluster, the owners of its objects, and Flotilla's state.
type sequence struct {
	random  *rand.Rand
	client  dynamic.Interface
	cluster *virtualCluster
	number  uint64
	epoch   int

	settings agent.Settings
	records  []onboarding.Record
	uid      string

	conflicting map[kube.Ref]bool   // objects with a field that another manager sets to another value
	foreign     map[kube.Ref]string // versions of the objects of others
	preexisting map[kube.Ref]bool   // objects that Flotilla wants and others created

	history            []string
	applies, conflicts int
}

var resources = map[string]schema.GroupVersionResource{
	"Namespace":     {Version: "v1", Resource: "namespaces"},
	"Secret":        {Version: "v1", Resource: "secrets"},
	"ConfigMap":     {Version: "v1", Resource: "configmaps"},
	"GitRepository": {Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"},
	"Kustomization": kustomizations,
}

func newSequence(client dynamic.Interface, cluster onboarding.ClusterAPI, seed, number uint64) *sequence {
	s := &sequence{
		random: rand.New(
			rand.NewPCG(seed, number),
		), client: client, cluster: &virtualCluster{ClusterAPI: cluster}, number: number, settings: settings("flux-system"),
	}
	s.replaceCluster()
	return s
}

func (s *sequence) log(format string, arguments ...any) {
	s.history = append(s.history, fmt.Sprintf(format, arguments...))
}

// replaceCluster replaces the cluster by an empty one.
func (s *sequence) replaceCluster() {
	s.epoch++
	s.cluster.prefix, s.cluster.uid = fmt.Sprintf("s%d-%d-", s.number, s.epoch), fmt.Sprintf("uid-%d-%d", s.number, s.epoch)
	s.conflicting, s.foreign, s.preexisting = map[kube.Ref]bool{}, map[kube.Ref]string{}, map[kube.Ref]bool{}
}

func (s *sequence) run(ctx context.Context) error {
	for range 4 + s.random.IntN(8) {
		var err error
		switch s.random.IntN(12) {
		case 0, 1:
			err = s.editField(ctx)
		case 2, 3:
			err = s.deleteObject(ctx)
		case 4:
			err = s.takeOverField(ctx)
		case 5:
			s.log("the cluster is replaced by an empty one")
			s.replaceCluster()
		case 6:
			s.log("the state is lost")
			s.records, s.uid = nil, ""
		case 7, 8:
			s.changeSettings()
		case 9:
			err = s.writeForeign(ctx)
		case 10:
			err = s.createWanted(ctx)
		case 11:
			err = s.destroy(ctx)
		}
		if err == nil && s.random.IntN(3) > 0 {
			err = s.applyAndCheck(ctx)
		}
		if err == nil {
			err = s.checkOthers(ctx)
		}
		if err != nil {
			return err
		}
	}
	if err := s.applyAndCheck(ctx); err != nil {
		return err
	}
	return s.checkOthers(ctx)
}

func (s *sequence) objects() []agent.StagedObject {
	objects, _ := agent.Render(s.settings)
	return objects
}

// resource returns the resource of an object on the server that all sequences share.
func (s *sequence) resource(ref kube.Ref) dynamic.ResourceInterface {
	kindResource := s.client.Resource(resources[ref.Kind])
	if ref.Namespace == "" {
		return kindResource
	}
	return kindResource.Namespace(s.cluster.prefixed(ref).Namespace)
}

func (s *sequence) nameOf(ref kube.Ref) string { return s.cluster.prefixed(ref).Name }

// randomRef returns a wanted object that is no namespace.
func (s *sequence) randomRef() kube.Ref {
	objects := slices.DeleteFunc(s.objects(), func(o agent.StagedObject) bool { return o.GetKind() == "Namespace" })
	return kube.RefOf(objects[s.random.IntN(len(objects))].Unstructured)
}

// randomField returns another value for a field that Flotilla sets.
func (s *sequence) randomField(ref kube.Ref) map[string]any {
	switch ref.Kind {
	case "Secret":
		return map[string]any{"data": map[string]any{"password": "eA=="}}
	case "Kustomization":
		if s.random.IntN(2) == 0 {
			return map[string]any{"spec": map[string]any{"path": fmt.Sprintf("./other-%d", s.random.IntN(1000))}}
		}
	}
	return map[string]any{"spec": map[string]any{"interval": fmt.Sprintf("%dm0s", 100+s.random.IntN(1000))}}
}

// editField changes a field by hand.
func (s *sequence) editField(ctx context.Context) error {
	ref := s.randomRef()
	if s.conflicting[ref] {
		return nil // the sequence does not record owners by field
	}
	if live, err := s.cluster.Read(ctx, ref); err != nil || s.preexisting[ref] && !isApplied(live) {
		return err // a changed object of others would conflict
	}
	patch := s.randomField(ref)
	if s.random.IntN(3) == 0 {
		patch = map[string]any{"metadata": map[string]any{"labels": map[string]any{"others": "may"}}}
	}
	s.log("somebody edits %s: %v", ref, patch)
	_, err := s.resource(ref).Patch(ctx, s.nameOf(ref), types.MergePatchType, marshal(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	return ignoreMissing(err)
}

// isApplied reports whether Flotilla has applied an object.
func isApplied(live *unstructured.Unstructured) bool {
	return live != nil &&
		slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == kube.FieldManager })
}

// deleteObject deletes an object by hand.
func (s *sequence) deleteObject(ctx context.Context) error {
	ref := s.randomRef()
	s.log("somebody deletes %s", ref)
	delete(s.conflicting, ref)
	delete(s.preexisting, ref)
	return ignoreMissing(s.resource(ref).Delete(ctx, s.nameOf(ref), metav1.DeleteOptions{}))
}

// takeOverField has another manager apply a field with another value.
func (s *sequence) takeOverField(ctx context.Context) error {
	ref := s.randomRef()
	live, err := s.cluster.Read(ctx, ref)
	if err != nil || live == nil || s.conflicting[ref] { // a second apply by the manager would drop its former field
		return err
	}
	s.log("another manager takes %s over", ref)
	content := s.randomField(ref)
	content["apiVersion"], content["kind"], content["metadata"] = ref.APIVersion, ref.Kind, map[string]any{"name": ref.Name}
	_, err = s.resource(ref).
		Patch(ctx, s.nameOf(ref), types.ApplyPatchType, marshal(content), metav1.PatchOptions{FieldManager: "another", Force: new(true)})
	s.conflicting[ref] = true
	return ignoreMissing(err)
}

func (s *sequence) changeSettings() {
	s.log("the settings change")
	switch s.random.IntN(4) {
	case 0:
		s.settings.Interval = time.Duration(1+s.random.IntN(50)) * time.Minute
	case 1:
		s.settings.ClusterType = []string{"store", "edge", "large"}[s.random.IntN(3)]
	case 2:
		s.settings.Name = []string{"", "one", "two"}[s.random.IntN(3)]
	case 3:
		s.settings.Credentials.Token = fmt.Sprint("token-", s.random.IntN(1000))
	}
}

// writeForeign writes an object of others.
func (s *sequence) writeForeign(ctx context.Context) error {
	ref := kube.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "flux-system", Name: fmt.Sprint("theirs-", s.random.IntN(3))}
	s.log("others write %s", ref)
	live, err := s.resource(ref).Patch(ctx, ref.Name, types.ApplyPatchType, marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": ref.Name}, "data": map[string]any{"a": fmt.Sprint(s.random.IntN(1000))},
	}), metav1.PatchOptions{FieldManager: "others", Force: new(true)})
	if err == nil {
		s.foreign[ref] = live.GetResourceVersion()
	}
	return ignoreMissing(err)
}

// createWanted has others create an object that Flotilla wants, without conflicting fields.
func (s *sequence) createWanted(ctx context.Context) error {
	ref := kube.RefOf(s.objects()[0].Unstructured)
	if s.random.IntN(2) == 0 {
		ref = kube.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "flux-system", Name: kube.RefOf(s.objects()[1].Unstructured).Name}
	}
	content := map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": map[string]any{"name": s.nameOf(ref)}}
	if _, err := s.resource(ref).Get(ctx, s.nameOf(ref), metav1.GetOptions{}); err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	s.log("others create %s", ref)
	_, err := s.resource(ref).Patch(ctx, s.nameOf(ref), types.ApplyPatchType, marshal(content), metav1.PatchOptions{FieldManager: "others"})
	if err == nil {
		s.preexisting[ref] = true
	}
	return ignoreMissing(err)
}

// applyAndCheck applies, and returns an error if the objects have not converged.
func (s *sequence) applyAndCheck(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	objects := s.objects()
	isConflicting := false
	for i := range objects {
		isConflicting = isConflicting || s.conflicting[kube.RefOf(objects[i].Unstructured)]
	}
	force := s.random.IntN(6) == 0
	s.log("apply, by force: %v; conflict: %v", force, isConflicting)
	s.applies++
	before, err := s.versions(ctx, objects)
	if err != nil {
		return err
	}
	result, err := onboarding.Apply(ctx, s.cluster, onboarding.Wanted{Objects: objects, Records: s.records, UID: s.uid, Force: force})
	if isConflicting && !force {
		s.conflicts++
		for _, failure := range onboarding.FailuresOf(err) {
			if failure.Cause != onboarding.CauseForeign || !strings.Contains(failure.Text, `managed by "another"`) {
				return fmt.Errorf("the conflict has the wrong cause or manager: %w", failure)
			}
		}
		after, readErr := s.versions(ctx, objects)
		if err == nil || readErr != nil || !maps.Equal(before, after) {
			return fmt.Errorf(
				"with a conflict, the error is %w, and the objects changed from %v to %v",
				errors.Join(err, readErr),
				before,
				after,
			)
		}
		return nil
	}
	if err != nil {
		return err
	}
	s.records, s.uid = result.Records, result.UID
	if force {
		s.conflicting = map[kube.Ref]bool{}
	}
	for ref := range s.conflicting { // the apply removes unwanted objects, even with fields of other managers
		live, err := s.cluster.Read(ctx, ref)
		if err != nil {
			return err
		}
		if live == nil {
			delete(s.conflicting, ref)
		}
	}
	look, err := onboarding.Inspect(ctx, s.cluster, objects, onboarding.InspectOptions{})
	if err != nil {
		return err
	}
	drift := onboarding.FindDrift(objects, look)
	if len(drift.Findings) > 0 {
		return fmt.Errorf("the objects have not converged: %v", drift.Findings)
	}
	for i := range result.Records {
		if ref := result.Records[i].Ref; result.Records[i].Created == s.preexisting[ref] {
			return fmt.Errorf("the record of %s says created: %v, but others created it: %v", ref, result.Records[i].Created, s.preexisting[ref])
		}
	}
	return nil
}

// versions returns the resource versions of objects.
func (s *sequence) versions(ctx context.Context, objects []agent.StagedObject) (map[string]string, error) {
	versions := map[string]string{}
	for i := range objects {
		live, err := s.cluster.Read(ctx, kube.RefOf(objects[i].Unstructured))
		if err != nil {
			return nil, err
		}
		if live != nil {
			versions[objects[i].ID().String()] = live.GetResourceVersion()
		}
	}
	return versions, nil
}

// destroy removes all objects, or only the roots and credentials.
func (s *sequence) destroy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	everything := s.random.IntN(2) == 0
	s.log("destroy everything: %v", everything)
	records, uid := s.records, s.uid
	s.records, s.uid = nil, ""
	if _, err := onboarding.Remove(ctx, s.cluster, onboarding.Removal{Name: "store-17", Records: records, UID: uid, Delete: everything}); err != nil {
		return err
	}
	if uid != s.cluster.uid {
		return nil // the cluster was replaced
	}
	for i := range records {
		record := &records[i]
		live, err := s.cluster.Read(ctx, record.Ref)
		if err != nil {
			return err
		}
		isRoot := record.Part == agent.Root || record.Part == agent.Credential
		if live != nil && !s.preexisting[record.Ref] && (isRoot || everything && record.Stage == agent.Rest) {
			return fmt.Errorf("%s still exists", record.ID())
		}
		if live == nil {
			delete(s.conflicting, record.Ref)
		}
	}
	return nil
}

// checkOthers returns an error if an object of others has changed.
func (s *sequence) checkOthers(ctx context.Context) error {
	for ref, version := range s.foreign {
		live, err := s.cluster.Read(ctx, ref)
		if err != nil {
			return err
		}
		if live == nil || live.GetResourceVersion() != version {
			return fmt.Errorf("%s of others has changed: %v", ref, live)
		}
	}
	for ref := range s.preexisting {
		live, err := s.cluster.Read(ctx, ref)
		if err != nil {
			return err
		}
		if live == nil || live.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s, created by others, was removed", ref)
		}
	}
	return nil
}

func marshal(value any) []byte {
	text, _ := json.Marshal(value) //nolint:errchkjson // only texts and maps
	return text
}

func ignoreMissing(err error) error {
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) || errors.As(err, &status) && strings.Contains(err.Error(), "being terminated") {
		return nil
	}
	return err
}
