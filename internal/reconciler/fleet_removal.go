package reconciler

import "k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

var fleetRemoval = Removal{Keeping: keepFleet, Pruning: pruneFleet}

func keepFleet(live *unstructured.Unstructured) map[string]any {
	if keeps, _, _ := unstructured.NestedBool(live.Object, "spec", "keepResources"); keeps {
		return nil
	}
	return specPatch(map[string]any{"keepResources": true})
}

func pruneFleet(live *unstructured.Unstructured) map[string]any {
	if keeps, _, _ := unstructured.NestedBool(live.Object, "spec", "keepResources"); keeps {
		return specPatch(map[string]any{"keepResources": false})
	}
	return nil
}
