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
// loses the state, and has others put their own objects beside ours. The next apply converges, or names who is in the
// way and writes nothing; no object of others ever changes.
func TestReliabilityAgentsConverge(t *testing.T) {
	t.Parallel()
	server := kubetest.Start(t, kubetest.Options{Agents: true, Controllers: true})
	count := reliabilitytest.Count(2, 1000)
	var steps, applies, conflicts, next atomic.Int64
	begin := uint64(time.Now().UnixNano())
	within(t, server, 3*time.Hour, func(ctx context.Context, cluster onboarding.ClusterAPI) {
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

// sequence is one cluster, who owns what on it, and what Flotilla knows of it.
type sequence struct {
	random *rand.Rand
	client dynamic.Interface
	world  *world
	number uint64
	epoch  int

	settings agent.Settings
	records  []onboarding.Record
	uid      string

	taken   map[kube.Ref]bool   // objects of which another manager has a field with another value
	foreign map[kube.Ref]string // objects of others, and their versions
	found   map[kube.Ref]bool   // objects that others made, and that Flotilla wants, too

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
		), client: client, world: &world{ClusterAPI: cluster}, number: number, settings: settings("flux-system"),
	}
	s.replace()
	return s
}

func (s *sequence) say(format string, arguments ...any) {
	s.history = append(s.history, fmt.Sprintf(format, arguments...))
}

// replace puts an empty cluster in the place of the one that was there.
func (s *sequence) replace() {
	s.epoch++
	s.world.prefix, s.world.uid = fmt.Sprintf("s%d-%d-", s.number, s.epoch), fmt.Sprintf("uid-%d-%d", s.number, s.epoch)
	s.taken, s.foreign, s.found = map[kube.Ref]bool{}, map[kube.Ref]string{}, map[kube.Ref]bool{}
}

func (s *sequence) run(ctx context.Context) error {
	for range 4 + s.random.IntN(8) {
		var err error
		switch s.random.IntN(12) {
		case 0, 1:
			err = s.edit(ctx)
		case 2, 3:
			err = s.remove(ctx)
		case 4:
			err = s.takeOver(ctx)
		case 5:
			s.say("the cluster is replaced by an empty one")
			s.replace()
		case 6:
			s.say("the state is lost")
			s.records, s.uid = nil, ""
		case 7, 8:
			s.change()
		case 9:
			err = s.beside(ctx)
		case 10:
			err = s.before(ctx)
		case 11:
			err = s.destroy(ctx)
		}
		if err == nil && s.random.IntN(3) > 0 {
			err = s.apply(ctx)
		}
		if err == nil {
			err = s.checkOthers(ctx)
		}
		if err != nil {
			return err
		}
	}
	if err := s.apply(ctx); err != nil {
		return err
	}
	return s.checkOthers(ctx)
}

func (s *sequence) objects() []agent.StagedObject {
	objects, _ := agent.Render(s.settings)
	return objects
}

// at is where an object is on the server that the sequences share.
func (s *sequence) at(ref kube.Ref) dynamic.ResourceInterface {
	all := s.client.Resource(resources[ref.Kind])
	if ref.Namespace == "" {
		return all
	}
	return all.Namespace(s.world.in(ref).Namespace)
}

func (s *sequence) nameOf(ref kube.Ref) string { return s.world.in(ref).Name }

// any is one of the objects that shall be there and is none of the namespaces.
func (s *sequence) any() kube.Ref {
	objects := slices.DeleteFunc(s.objects(), func(o agent.StagedObject) bool { return o.GetKind() == "Namespace" })
	return kube.RefOf(objects[s.random.IntN(len(objects))].Unstructured)
}

// aField is a field of an object that Flotilla sets, with another value.
func (s *sequence) aField(ref kube.Ref) map[string]any {
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

// edit changes a field by hand.
func (s *sequence) edit(ctx context.Context) error {
	ref := s.any()
	if s.taken[ref] {
		return nil // who has it would have to be known field by field
	}
	if live, err := s.world.Read(ctx, ref); err != nil || s.found[ref] && !isApplied(live) {
		return err // what others made with another value in it is in the way
	}
	patch := s.aField(ref)
	if s.random.IntN(3) == 0 {
		patch = map[string]any{"metadata": map[string]any{"labels": map[string]any{"others": "may"}}}
	}
	s.say("somebody edits %s: %v", ref, patch)
	_, err := s.at(ref).Patch(ctx, s.nameOf(ref), types.MergePatchType, marshal(patch), metav1.PatchOptions{FieldManager: "kubectl-edit"})
	return ifThere(err)
}

// isApplied says whether Flotilla has applied an object.
func isApplied(live *unstructured.Unstructured) bool {
	return live != nil &&
		slices.ContainsFunc(live.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Manager == kube.FieldManager })
}

// remove deletes an object by hand.
func (s *sequence) remove(ctx context.Context) error {
	ref := s.any()
	s.say("somebody deletes %s", ref)
	delete(s.taken, ref)
	delete(s.found, ref)
	return ifThere(s.at(ref).Delete(ctx, s.nameOf(ref), metav1.DeleteOptions{}))
}

// takeOver has another manager apply a field with another value.
func (s *sequence) takeOver(ctx context.Context) error {
	ref := s.any()
	live, err := s.world.Read(ctx, ref)
	if err != nil || live == nil || s.taken[ref] { // it would give up what it had before, which may have to be there
		return err
	}
	s.say("another manager takes %s over", ref)
	content := s.aField(ref)
	content["apiVersion"], content["kind"], content["metadata"] = ref.APIVersion, ref.Kind, map[string]any{"name": ref.Name}
	_, err = s.at(ref).
		Patch(ctx, s.nameOf(ref), types.ApplyPatchType, marshal(content), metav1.PatchOptions{FieldManager: "another", Force: new(true)})
	s.taken[ref] = true
	return ifThere(err)
}

// change changes the settings.
func (s *sequence) change() {
	s.say("the settings change")
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

// beside puts an object of others beside ours.
func (s *sequence) beside(ctx context.Context) error {
	ref := kube.Ref{APIVersion: "v1", Kind: "ConfigMap", Namespace: "flux-system", Name: fmt.Sprint("theirs-", s.random.IntN(3))}
	s.say("others put %s there", ref)
	live, err := s.at(ref).Patch(ctx, ref.Name, types.ApplyPatchType, marshal(map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": ref.Name}, "data": map[string]any{"a": fmt.Sprint(s.random.IntN(1000))},
	}), metav1.PatchOptions{FieldManager: "others", Force: new(true)})
	if err == nil {
		s.foreign[ref] = live.GetResourceVersion()
	}
	return ifThere(err)
}

// before has others make an object that Flotilla wants, too: with nothing in it that would be in the way.
func (s *sequence) before(ctx context.Context) error {
	ref := kube.RefOf(s.objects()[0].Unstructured)
	if s.random.IntN(2) == 0 {
		ref = kube.Ref{APIVersion: "v1", Kind: "Secret", Namespace: "flux-system", Name: kube.RefOf(s.objects()[1].Unstructured).Name}
	}
	content := map[string]any{"apiVersion": ref.APIVersion, "kind": ref.Kind, "metadata": map[string]any{"name": s.nameOf(ref)}}
	if _, err := s.at(ref).Get(ctx, s.nameOf(ref), metav1.GetOptions{}); err == nil || !apierrors.IsNotFound(err) {
		return err
	}
	s.say("others make %s", ref)
	_, err := s.at(ref).Patch(ctx, s.nameOf(ref), types.ApplyPatchType, marshal(content), metav1.PatchOptions{FieldManager: "others"})
	if err == nil {
		s.found[ref] = true
	}
	return ifThere(err)
}

// apply applies, and finds out whether it has converged.
func (s *sequence) apply(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	objects := s.objects()
	inTheWay := false
	for i := range objects {
		inTheWay = inTheWay || s.taken[kube.RefOf(objects[i].Unstructured)]
	}
	force := s.random.IntN(6) == 0
	s.say("apply, by force: %v; something is in the way: %v", force, inTheWay)
	s.applies++
	before, err := s.versions(ctx, objects)
	if err != nil {
		return err
	}
	result, err := onboarding.Apply(ctx, s.world, onboarding.Wanted{Objects: objects, Records: s.records, UID: s.uid, Force: force})
	if inTheWay && !force {
		s.conflicts++
		for _, failure := range onboarding.FailuresOf(err) {
			if failure.Cause != onboarding.CauseForeign || !strings.Contains(failure.Text, `managed by "another"`) {
				return fmt.Errorf("a conflict is %w", failure)
			}
		}
		after, readErr := s.versions(ctx, objects)
		if err == nil || readErr != nil || !maps.Equal(before, after) {
			return fmt.Errorf(
				"with something in the way the error is %w, and what is there went from %v to %v",
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
		s.taken = map[kube.Ref]bool{}
	}
	for ref := range s.taken { // what is wanted no more has gone, whoever else had a field of it
		live, err := s.world.Read(ctx, ref)
		if err != nil {
			return err
		}
		if live == nil {
			delete(s.taken, ref)
		}
	}
	look, err := onboarding.Inspect(ctx, s.world, objects, onboarding.InspectOptions{})
	if err != nil {
		return err
	}
	drift := onboarding.FindDrift(objects, look)
	if len(drift.Findings) > 0 {
		return fmt.Errorf("it has not converged: %v", drift.Findings)
	}
	for i := range result.Records {
		if ref := result.Records[i].Ref; result.Records[i].Created == s.found[ref] {
			return fmt.Errorf("%s is said to be made: %v, and found: %v", ref, result.Records[i].Created, s.found[ref])
		}
	}
	return nil
}

// versions are the resource versions of objects.
func (s *sequence) versions(ctx context.Context, objects []agent.StagedObject) (map[string]string, error) {
	versions := map[string]string{}
	for i := range objects {
		live, err := s.world.Read(ctx, kube.RefOf(objects[i].Unstructured))
		if err != nil {
			return nil, err
		}
		if live != nil {
			versions[objects[i].ID().String()] = live.GetResourceVersion()
		}
	}
	return versions, nil
}

// destroy takes everything away, or what follows the folders.
func (s *sequence) destroy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	all := s.random.IntN(2) == 0
	s.say("destroy, with what it brought: %v", all)
	records, uid := s.records, s.uid
	s.records, s.uid = nil, ""
	if _, err := onboarding.Remove(ctx, s.world, onboarding.Removal{Name: "store-17", Records: records, UID: uid, Delete: all}); err != nil {
		return err
	}
	if uid != s.world.uid {
		return nil // another cluster by now
	}
	for i := range records {
		record := &records[i]
		live, err := s.world.Read(ctx, record.Ref)
		if err != nil {
			return err
		}
		isRoot := record.Part == agent.Root || record.Part == agent.Credential
		if live != nil && !s.found[record.Ref] && (isRoot || all && record.Stage == agent.Rest) {
			return fmt.Errorf("%s is still there", record.ID())
		}
		if live == nil {
			delete(s.taken, record.Ref)
		}
	}
	return nil
}

// checkOthers finds out whether what is others' is as they left it.
func (s *sequence) checkOthers(ctx context.Context) error {
	for ref, version := range s.foreign {
		live, err := s.world.Read(ctx, ref)
		if err != nil {
			return err
		}
		if live == nil || live.GetResourceVersion() != version {
			return fmt.Errorf("%s of others has changed: %v", ref, live)
		}
	}
	for ref := range s.found {
		live, err := s.world.Read(ctx, ref)
		if err != nil {
			return err
		}
		if live == nil || live.GetDeletionTimestamp() != nil {
			return fmt.Errorf("%s, which others had made, has gone", ref)
		}
	}
	return nil
}

func marshal(value any) []byte {
	text, _ := json.Marshal(value) //nolint:errchkjson // texts and maps alone
	return text
}

func ifThere(err error) error {
	var status apierrors.APIStatus
	if apierrors.IsNotFound(err) || errors.As(err, &status) && strings.Contains(err.Error(), "being terminated") {
		return nil
	}
	return err
}
