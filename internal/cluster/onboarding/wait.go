package onboarding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/observe"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/render"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// Following makes [Apply] wait until the cluster follows its folders.
type Following struct {
	Location             folder.Location
	Cluster, ClusterType string
	// Tip returns the newest commit of the branch; "" without a branch.
	Tip func(ctx context.Context) (string, error)
}

func (f *Following) wait(ctx context.Context, cluster ClusterAPI, objects []agent.StagedObject) error {
	var pending []string
	err := poll(ctx, func() (bool, error) {
		lives, err := readLive(ctx, cluster, objects)
		if err != nil {
			return false, err
		}
		if waiting := unreadyObjects(objects, lives); len(waiting) > 0 {
			pending = waiting
			return false, nil
		}
		tip, err := f.Tip(ctx)
		if err != nil {
			return false, err
		}
		waiting, err := f.pendingFolders(ctx, cluster, objects, lives, tip)
		if err != nil {
			return false, err // after a timeout, pending has the reasons
		}
		pending = waiting
		return len(pending) == 0, nil
	})
	if err != nil {
		return timeoutError(ctx, "", "not ready in time: "+wording.List(pending, wording.Named), err)
	}
	return nil
}

// readLive reads the objects in order; nil for missing ones.
func readLive(ctx context.Context, cluster ClusterAPI, objects []agent.StagedObject) ([]*unstructured.Unstructured, error) {
	lives := make([]*unstructured.Unstructured, len(objects))
	err := forEach(len(objects), func(i int) (err error) {
		if object := &objects[i]; object.Reports || object.Part == agent.Root || object.Part == agent.Source {
			lives[i], err = cluster.Read(ctx, kube.RefOf(object.Unstructured))
		}
		return err
	})
	return lives, err
}

// unreadyObjects lists the agent's own objects that are not ready, without root objects.
func unreadyObjects(objects []agent.StagedObject, lives []*unstructured.Unstructured) []string {
	var pending []string
	for i := range objects {
		if !objects[i].Reports || objects[i].Part == agent.Root {
			continue
		}
		id := objects[i].ID().String()
		if lives[i] == nil {
			pending = append(pending, id+" is not there")
			continue
		}
		if objects[i].Part != agent.Install {
			if status := reconciler.StatusOf(lives[i]); status.Verdict != verdict.Ready {
				pending = append(pending, status.Message)
			}
			continue
		}
		result, err := status.Compute(lives[i])
		switch {
		case err != nil:
			pending = append(pending, id+" cannot be understood")
		case result.Status != status.CurrentStatus:
			pending = append(pending, id+": "+wording.OneLine(result.Message))
		}
	}
	return pending
}

// pendingFolders lists the folders whose tip is not applied, or not ready.
func (f *Following) pendingFolders(
	ctx context.Context,
	cluster ClusterAPI,
	objects []agent.StagedObject,
	lives []*unstructured.Unstructured,
	tip string,
) ([]string, error) {
	if tip == "" {
		return []string{"the branch " + f.Location.Branch + " does not exist yet"}, nil
	}
	report, contents, err := f.read(ctx, cluster, objects[0].OnHub, lives)
	if err != nil {
		return nil, err
	}
	if report.Unknown != "" {
		return []string{report.Unknown}, nil
	}
	var pending []string
	for _, host := range observe.FollowedHosts(f.ClusterType, f.Cluster) {
		applied, follows := report.Applied[host]
		switch {
		case !follows:
			pending = append(pending, "nothing follows the folder "+host)
		case applied.NoFolder && host != f.ClusterType: // a cluster may have no folder while nothing is assigned to it
		case applied.Commit != tip:
			pending = append(pending, fmt.Sprintf("folder %s: commit %.7s has not been applied yet: %s", host, tip, applied.Message))
		case slices.ContainsFunc(applied.OnHub, func(onHub reconciler.Applied) bool { return onHub.Commit != tip }):
			pending = append(pending, fmt.Sprintf("folder %s: the hub itself has not applied commit %.7s yet", host, tip))
		case applied.Verdict != verdict.Ready:
			pending = append(pending, "folder "+host+": "+applied.Message)
		default:
			pending = append(pending, contents.UnreadyObjects(host, render.LabelValue(host))...)
		}
	}
	return pending, nil
}

// read returns reports of the root objects and of the folders' contents. The second is empty if the roots wait for
// everything they apply.
func (f *Following) read(
	ctx context.Context,
	cluster ClusterAPI,
	onHub bool,
	lives []*unstructured.Unstructured,
) (report, contents observe.ClusterReport, err error) {
	if onHub {
		listed, err := listKinds(ctx, cluster, reconciler.Hub())
		if err != nil {
			return report, contents, err
		}
		report = observe.ReadHub(f.Location, map[string]string{f.Cluster: f.ClusterType}, listed)[f.Cluster]
		return report, report, nil
	}
	there := slices.DeleteFunc(slices.Clone(lives), func(live *unstructured.Unstructured) bool { return live == nil })
	report = observe.ReadCluster(f.Location, f.ClusterType, f.Cluster, reconciler.Answer{Objects: there})
	for _, live := range there {
		kind := reconciler.KindNamed(live.GetKind())
		if !kind.Is(reconciler.Follows) || kind.WaitsForAll {
			continue
		}
		listed, err := listKinds(ctx, cluster, reconciler.OfGroup(kind.Group))
		if err != nil {
			return report, contents, err
		}
		contents = observe.ReadCluster(f.Location, f.ClusterType, f.Cluster, listed)
		if len(kind.Makes) > 0 {
			report = contents
		}
		return report, contents, nil
	}
	return report, contents, nil
}

// listKinds tolerates credentials for root objects alone if there are no others.
func listKinds(ctx context.Context, on ClusterAPI, of *reconciler.Reconciler) (listed reconciler.Answer, err error) {
	listed.Unlisted = map[string]string{}
	for _, kind := range of.ListedKinds() {
		found, err := on.List(ctx, listedAs(&kind), kube.ListOptions{})
		switch {
		case kube.ReasonOf(err) == kube.ReasonForbidden && !kind.Is(reconciler.Follows):
			listed.Unlisted[kind.Kind] = err.Error()
		case err != nil:
			return listed, err
		}
		listed.Objects = append(listed.Objects, found.Items...)
	}
	return listed, nil
}

func listedAs(kind *reconciler.ObjectKind) kube.ResourceKind {
	return kube.ResourceKind{Group: kind.Group, Versions: kind.Versions, Resource: kind.Resource}
}

// ErrNotFollowed means that nothing on a cluster reads the branch.
var ErrNotFollowed = errors.New("nothing follows the branch")

// RequestRefresh makes the agent on a cluster read a branch now, and returns the annotated objects, such as
// "GitRepository flux-system/flotilla". now must be a new text in each call. The only error not from package kube is
// ErrNotFollowed.
func RequestRefresh(ctx context.Context, cluster ClusterAPI, by *reconciler.Reconciler, at folder.Location, now string) ([]string, error) {
	look := by.Refresh
	found, err := cluster.List(ctx, listedAs(reconciler.KindNamed(look.Kind)), kube.ListOptions{})
	if err != nil {
		return nil, err
	}
	value := cmp.Or(look.Value, now)
	var asked []string
	var failed []error
	for _, one := range found.Items {
		if !look.Reads(one, at) {
			continue
		}
		ref := kube.RefOf(one)
		patched, err := cluster.Patch(ctx, ref, map[string]any{"metadata": map[string]any{"annotations": map[string]any{look.Annotation: value}}})
		switch {
		case err != nil:
			failed = append(failed, err)
		case patched != nil:
			asked = append(asked, ref.String())
		}
	}
	if len(failed) > 0 {
		return asked, failed[0]
	}
	if len(asked) == 0 {
		return nil, fmt.Errorf("%w: no %s there reads branch %q of gitops_repo", ErrNotFollowed, look.Kind, at.Branch)
	}
	slices.SortFunc(asked, strings.Compare)
	return asked, nil
}
