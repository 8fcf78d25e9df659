package reconciler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	applicationRemoval = Removal{
		Keeping: patching(change{"metadata.finalizers", withoutFinalizer}, change{"spec.syncPolicy.automated.prune", from(true, false)}),
		Pruning: patching(change{"metadata.finalizers", withFinalizer}), Removes: applicationRemoves,
		Inventory: applicationInventory, Waits: true,
		Kept: keptByArgo, Mark: markForArgo, Delay: 2 * time.Second,
	}
	applicationSetRemoval = Removal{
		// The controller restores its Applications to the template.
		Keeping: patching(
			change{preserves, to(true)},
			change{templateFinalizers, withoutFinalizer},
			change{"spec.template.spec.syncPolicy.automated.prune", from(true, false)},
		),
		Pruning: patching(change{preserves, from(true, false)}, change{templateFinalizers, withFinalizer}),
	}
)

const argoOptions = "argocd.argoproj.io/sync-options"

func keptByArgo(applied *unstructured.Unstructured) bool {
	annotations := applied.GetAnnotations()
	return slices.Contains(optionsOf(annotations[argoOptions]), "Delete=false") || annotations["helm.sh/resource-policy"] == "keep"
}

func markForArgo(applied *unstructured.Unstructured) (annotation, value string) {
	options := optionsOf(applied.GetAnnotations()[argoOptions])
	for _, option := range []string{"Prune=false", "Delete=false"} {
		if !slices.Contains(options, option) {
			options = append(options, option)
		}
	}
	return argoOptions, strings.Join(options, ",")
}

func optionsOf(text string) []string {
	var options []string
	for _, option := range strings.Split(text, ",") {
		if option = strings.TrimSpace(option); option != "" {
			options = append(options, option)
		}
	}
	return options
}

const (
	preserves          = "spec.syncPolicy.preserveResourcesOnDeletion"
	templateFinalizers = "spec.template.metadata.finalizers"
)

func withoutFinalizer(finalizers any) any {
	list, _ := finalizers.([]any)
	left := slices.DeleteFunc(slices.Clone(list), func(one any) bool { return isArgoFinalizer(fmt.Sprint(one)) })
	if len(left) == len(list) {
		return nil
	}
	return left
}

func withFinalizer(finalizers any) any {
	list, _ := finalizers.([]any)
	if slices.ContainsFunc(list, func(one any) bool { return isArgoFinalizer(fmt.Sprint(one)) }) {
		return nil
	}
	return append(slices.Clone(list), ArgoFinalizer)
}

func isArgoFinalizer(finalizer string) bool { return strings.HasPrefix(finalizer, ArgoFinalizer) }

func applicationRemoves(live *unstructured.Unstructured) bool {
	to := jsonObject(live.Object).object("spec", "destination")
	isHub := to.text("server") == HubServer || to.text("name") == HubName
	return isHub && slices.ContainsFunc(live.GetFinalizers(), isArgoFinalizer)
}

func applicationInventory(live *unstructured.Unstructured) []InventoryEntry {
	var found []InventoryEntry
	for _, one := range jsonObject(live.Object).list("status", "resources") {
		if one.text("version") != "" && one.text("kind") != "" && one.text("name") != "" {
			found = append(found, InventoryEntry{one.text("group"), one.text("version"), one.text("kind"), one.text("namespace"), one.text("name")})
		}
	}
	return found
}
