package fleet

import (
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// FirstName returns the oldest name, which clusters keep: a rename removes nothing.
func (c *ClusterType) FirstName() string {
	if len(c.Formerly) > 0 {
		return c.Formerly[0]
	}
	return c.Name
}

// Renames maps former names of cluster types to current ones.
func (f *Fleet) Renames() map[string]string {
	renames := map[string]string{}
	for i := range f.ClusterTypes {
		for _, name := range f.ClusterTypes[i].Formerly {
			renames[name] = f.ClusterTypes[i].Name
		}
	}
	return renames
}

// ApplyRenames gives cluster types their names in a later fleet.
func (f *Fleet) ApplyRenames(later *Fleet) {
	renames := later.Renames()
	if len(renames) == 0 {
		return
	}
	formerly := map[string][]string{}
	for i := range later.ClusterTypes {
		formerly[later.ClusterTypes[i].Name] = later.ClusterTypes[i].Formerly
	}
	rename := func(name *string) {
		if now, renamed := renames[*name]; renamed {
			*name = now
		}
	}
	for i := range f.ClusterTypes {
		one := &f.ClusterTypes[i]
		rename(&one.Name)
		one.Formerly = formerly[one.Name]
	}
	for i := range f.Clusters {
		rename(&f.Clusters[i].ClusterType)
	}
	for i := range f.Assignments {
		rename(&f.Assignments[i].ClusterType)
	}
	f.sortLists()
}

type formerName struct {
	path      *Path
	name, now string
}

func (c *crossReferences) noteFormerNames(o *ObjectReader, clusterType *ClusterType) {
	if len(clusterType.Formerly) == 0 || !isSet(clusterType.Name) {
		return
	}
	if of := reconciler.Named(clusterType.Reconciler); of != nil && of.NoRename != "" {
		o.Report("formerly", "cannot be set: %s", of.NoRename)
	}
	EachText(o, "formerly", func(path *Path, name string) {
		if problem := checkClusterTypeName(name); problem != "" {
			c.reader.Report(path, "%s", problem)
			return
		}
		c.formerNames = append(c.formerNames, formerName{path, name, clusterType.Name})
	})
}

func (c *crossReferences) checkFormerNames() {
	had := map[string]string{}
	for _, one := range c.formerNames {
		by, twice := had[one.name]
		switch isType := func(c ClusterType) bool { return c.Name == one.name }; {
		case one.name == one.now:
			c.reader.Report(one.path, "is the name that the cluster type has now: name those that it had before")
		case twice && by == one.now:
			c.reader.Report(one.path, "is there twice")
		case twice:
			c.reader.Report(one.path, "cluster type %q was called %q, too: only one of the two can have its folders", by, one.name)
		case slices.ContainsFunc(c.decoded.Fleet.ClusterTypes, isType):
			c.reader.Report(one.path, "a cluster type of the fleet is called %q: choose another name for that one", one.name)
		}
		had[one.name] = one.now
	}
}

func (c *crossReferences) nameNow(name string) string {
	for _, one := range c.formerNames {
		if one.name == name {
			return one.now
		}
	}
	return ""
}
