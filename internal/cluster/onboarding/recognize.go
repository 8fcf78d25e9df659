package onboarding

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/agent"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// FindAgents reads the agents of a cluster with [agent.Read].
func FindAgents(ctx context.Context, client *kube.ClusterClient, name string) (found []agent.Settings, refused []agent.Refused, err error) {
	var kinds []kube.ResourceKind
	for _, kind := range agent.Kinds() {
		kinds = append(kinds, listedAs(kind))
	}
	var live []*unstructured.Unstructured
	options := kube.ListOptions{LabelSelector: reconciler.ManagedLabel + "=" + reconciler.ManagedBy}
	for _, listing := range client.ListEach(ctx, kinds, options) {
		if listing.Err != nil {
			return nil, nil, listing.Err
		}
		live = append(live, listing.Items...)
	}
	found, refused = agent.Read(name, live)
	return found, refused, nil
}

// Recognize returns the records of an agent's objects as an apply would have left them.
func Recognize(objects []agent.StagedObject, look Inspection) []Record {
	var records []Record
	for i := range objects {
		live := look.Seen[objects[i].ID()].Live
		if live == nil {
			continue
		}
		record := RecordOf(&objects[i])
		record.UID, record.Created = string(live.GetUID()), isCreated(&objects[i], live, markOf(look.UID))
		records = append(records, record)
	}
	return records
}
