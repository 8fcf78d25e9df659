package agent

func (r *renderer) argocd() {}

func (r *renderer) hub() {}

func (r *renderer) rancher() {}

func (r *renderer) checkFeedback() {}

func (r *renderer) checkRegistration() {}
