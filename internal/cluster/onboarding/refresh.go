package onboarding

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

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
