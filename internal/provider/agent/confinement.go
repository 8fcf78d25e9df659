package agent

import (
	"cmp"
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/kube"
	"github.com/flotilla/terraform-provider-flotilla/internal/cluster/onboarding"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/once"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// confinement returns the confinement to check; nil if install sets it, or the user declines it.
func (r *request) confinement() *reconciler.Confinement {
	m := r.model
	isDeclined := !m.Confine.IsNull() && !m.Confine.ValueBool()
	if isDeclined || !m.Install.IsNull() {
		return nil
	}
	return r.reconciler().Agent.Confinement
}

func (r *request) reconciler() *reconciler.Reconciler {
	return reconciler.Named(cmp.Or(r.model.Reconciler.ValueString(), reconciler.DefaultAgent))
}

// checkConfinement warns of controllers that lend their rights to others. Equal warnings are merged, so they do not
// name the cluster.
func (r *request) checkConfinement(ctx context.Context, client *kube.ClusterClient) {
	confinement := r.confinement()
	if confinement == nil {
		return
	}
	of := r.reconciler()
	lacks, forbidden, err := onboarding.FindUnconfined(ctx, client, confinement, cmp.Or(r.model.Namespace.ValueString(), of.Namespace))
	if err != nil {
		return
	}
	const remedy = "Add the arguments, or set confine = false if the platform alone may create such objects on the cluster."
	switch {
	case len(lacks) > 0:
		once.Warning(r.diagnostics, path.Root("confine"), of.Product+" does not confine teams", fmt.Sprintf(
			"%s. A member of a team who may create objects of %s in one namespace, as the roles edit and admin allow, gets the rights of "+
				"its controllers on the whole cluster: the service_account of a workspace is no boundary there. %s",
			wording.List(lacks, wording.Named),
			of.Product,
			remedy,
		))
	case forbidden:
		once.Warning(r.diagnostics, path.Root("confine"), of.Product+" may not confine teams", fmt.Sprintf(
			"The credentials of the cluster may not list Deployments, so it is not known whether the controllers of %s have the arguments "+
				"that confine teams. Allow them to list deployments.apps, or set confine = false.",
			of.Product,
		))
	}
}
