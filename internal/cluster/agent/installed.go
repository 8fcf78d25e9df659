package agent

func (r *renderer) checkInstalled() {
	if len(r.settings.Install) == 0 {
		return
	}
	for _, one := range r.settings.reconciler().Agent.Controllers {
		deployment := r.find("Deployment", one.Name)
		switch {
		case one.Reports && r.settings.Feedback == nil:
		case deployment == nil:
			r.warn("install", "has no Deployment %s: without it %s", one.Name, one.Without)
		case one.Check != nil:
			if problem := one.Check(deployment.Unstructured); problem != "" {
				r.warn("install", "%s", problem)
			}
		}
	}
}

func (r *renderer) find(kind, name string) *StagedObject {
	for _, o := range r.objects {
		if o.Part == Install && o.GetKind() == kind && o.GetName() == name {
			return o
		}
	}
	return nil
}
