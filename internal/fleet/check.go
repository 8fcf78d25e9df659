package fleet

// CheckObject checks one object by itself, as it would be checked in that collection of a fleet:
// "environments", "workspaces", "cluster_types", "clusters", "workloads", "target_policies",
// "config_containers", "config_schemas" or "templates". What it refers to is not looked for. The
// paths of findings are relative to the object.
func CheckObject(collection string, value any) Findings {
	d := newDecoder()
	decode, ok := map[string]func(*object) bool{
		"environments":      d.environment,
		"workspaces":        d.workspace,
		"cluster_types":     d.clusterType,
		"clusters":          d.cluster,
		"workloads":         d.workload,
		"target_policies":   d.targetPolicy,
		"config_containers": d.configContainer,
		"config_schemas":    d.configSchema,
		"templates":         d.template,
	}[collection]
	if !ok {
		return Findings{{Message: "no collection of a fleet is called " + collection}}
	}
	d.environmentKnown = false // an object of any environment is checked
	if o, _ := d.object(nil, value); o != nil {
		decode(o)
	}
	return d.findings
}

// environment checks an environment, which is not part of any fleet's model.
func (d *decoder) environment(o *object) bool {
	o.name(CheckLabelName)
	o.labels("labels")
	o.text("description")
	if o.value("gitops_repo") == nil {
		o.report("gitops_repo", "is required")
	}
	o.attribute("gitops_repo", func(repo *object) { repo.gitopsRepo() })
	o.finish()
	return true
}

// DecodeGitopsRepo reads {url, branch, path}. known is false as long as one of them is unknown, or
// all of it is.
func DecodeGitopsRepo(value any) (repo GitopsRepo, known bool, findings Findings) {
	d := newDecoder()
	o, isUnknown := d.object(nil, value)
	if o == nil {
		return GitopsRepo{}, false, d.findingsUnless(isUnknown)
	}
	repo = o.gitopsRepo()
	return repo, !o.unknown, d.findings
}

func (d *decoder) findingsUnless(isUnknown bool) Findings {
	if isUnknown {
		return nil
	}
	return d.findings
}

// gitopsRepo reads a place in a repository. "." is the root, as is no path at all.
func (o *object) gitopsRepo() GitopsRepo {
	repo := GitopsRepo{URL: o.required("url"), Branch: o.required("branch"), Path: o.text("path")}
	if repo.Path == "." || repo.Path == "./" || repo.Path == "/" {
		repo.Path = ""
	}
	o.finish()
	return repo
}
