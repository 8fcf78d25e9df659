package render

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/encrypted"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/objects"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/schedule"
)

// ChooseEncryptedWriters decides which assignment writes a shared encrypted file. Call it after [Templates.ChooseWriters].
// reach returns the files of the assignment with index i.
func (t *Templates) ChooseEncryptedWriters(assignments []*schedule.Assignment, reach func(i int) EncryptedReach) fleet.Findings {
	a := &encryptedChooser{
		templates: t, sharing: map[encryptedOn][]encryptedIn{}, waiting: map[namespaceOn]string{},
		referring: map[encryptedOn][]*schedule.Assignment{},
	}
	var all []encryptedIn
	for i, assignment := range assignments {
		reaching := reach(i)
		if on := (namespaceOn{assignment.Host.Name, assignment.Namespace}); !reaching.Known && assignment.Target.Target.Namespace != "" {
			if first, waits := a.waiting[on]; !waits || assignment.Target.Name < first {
				a.waiting[on] = assignment.Target.Name
			}
		}
		for j := range reaching.Files {
			all = append(all, encryptedIn{assignment, &reaching.Files[j]})
		}
	}
	if len(all) == 0 {
		return nil
	}
	for i, assignment := range assignments {
		if name := secretName(assignment.Target.Target); name != "" && reach(i).References {
			on := encryptedOn{assignment.Host.ClusterType.Name, assignment.Namespace, name}
			a.referring[on] = append(a.referring[on], assignment)
		}
	}
	for _, one := range all {
		a.checkFile(one)
	}
	a.chooseWriters()
	found := a.list()
	slices.SortStableFunc(found, func(a, b fleet.Finding) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return found
}

// EncryptedReach holds the encrypted files that reach an assignment, if Known, and whether references to secrets do.
type EncryptedReach struct {
	Known      bool
	Files      []encrypted.File
	References bool
}

type encryptedIn struct {
	*schedule.Assignment
	file *encrypted.File
}

// encryptedOn is the Secret of an encrypted file in a shared namespace on a host.
type encryptedOn struct{ host, namespace, name string }

type encryptedChooser struct {
	findingsByPlace
	templates *Templates
	sharing   map[encryptedOn][]encryptedIn
	waiting   map[namespaceOn]string                 // first by name with unknown files
	referring map[encryptedOn][]*schedule.Assignment // by cluster type
}

// report adds a mistake in a file; %%s in its text stands for the place.
func (a *encryptedChooser) report(file *encrypted.File, where, format string, arguments ...any) {
	a.add(where, fleet.PathOf("config_containers", file.Container).Attribute("encrypted").Index(file.Index), format, arguments...)
}

func (a *encryptedChooser) checkFile(one encryptedIn) {
	host, clusterType := a.templates.hostOf(one.Assignment), one.Host.ClusterType
	if one.file.Namespace != one.Namespace {
		a.report(one.file, fmt.Sprintf("deployment target %q on %q in namespace %q", one.Target.Name, one.Host.Name, one.Namespace),
			"is for namespace %q, but reaches %%s: encrypt a file for each namespace, or give the deployment targets this one", one.file.Namespace)
		return
	}
	if one.file.Method == encrypted.SOPS {
		where := fmt.Sprintf("cluster type %q", clusterType.Name)
		if host.reconciler != nil && host.reconciler.NoSOPS != "" {
			a.report(one.file, where,
				"is encrypted with SOPS, but reaches %%s: %s; give a SealedSecret there, or references to a store, in secrets",
				host.reconciler.NoSOPS)
		} else if clusterType.Decryption == nil {
			a.report(one.file, where, "is encrypted with SOPS, but reaches %%s, whose agent has no key for it: set the cluster type's decryption")
		}
	}
	for _, other := range a.referring[encryptedOn{clusterType.Name, one.Namespace, one.file.Name}] {
		if other.Host.Name == one.Host.Name || other.Host.Cluster == nil || one.Host.Cluster == nil {
			a.report(one.file, fmt.Sprintf("deployment target %q", other.Target.Name),
				"is of Secret %q, which the references to secrets of %%s become: give one of the two another name", one.file.Name)
		}
	}
	if one.Target.Target.Namespace != "" {
		on := encryptedOn{one.Host.Name, one.Namespace, one.file.Name}
		a.sharing[on] = append(a.sharing[on], one)
	}
}

// chooseWriters chooses as [Templates.ChooseWriters] does.
func (a *encryptedChooser) chooseWriters() {
	for _, on := range slices.SortedFunc(maps.Keys(a.sharing), func(a, b encryptedOn) int {
		return cmp.Or(cmp.Compare(a.host, b.host), cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.name, b.name))
	}) {
		byTarget := func(a, b encryptedIn) int { return cmp.Compare(a.Target.Name, b.Target.Name) }
		here := slices.SortedFunc(slices.Values(a.sharing[on]), byTarget)
		first := here[0]
		if first.Host.Cluster != nil {
			if ofType := a.sharing[encryptedOn{first.Host.ClusterType.Name, on.namespace, on.name}]; ofType != nil {
				first = slices.MinFunc(ofType, byTarget)
			}
		}
		for _, one := range here {
			switch {
			case one.Assignment == first.Assignment:
				role := a.templates.roles[one.Assignment]
				role.isPending = role.isPending || a.hasPendingWriter(one)
			case one.file.Text != first.file.Text:
				a.report(one.file, fmt.Sprintf("deployment target %q", one.Target.Name),
					"is of Secret %q in namespace %q, of which deployment target %q gets another file, from config container %q, than %%s: give one of "+
						"the Secrets another name", on.name, on.namespace, first.Target.Name, first.file.Container)
			default:
				role := a.templates.roles[one.Assignment]
				role.secretsElsewhere = append(role.secretsElsewhere, on.name)
			}
		}
	}
}

// hasPendingWriter reports whether an assignment with unknown files may become the writer.
func (a *encryptedChooser) hasPendingWriter(one encryptedIn) bool {
	first, waits := a.waiting[namespaceOn{one.Host.Name, one.Namespace}]
	if waits = waits && first < one.Target.Name; !waits && one.Host.Cluster != nil {
		_, waits = a.waiting[namespaceOn{one.Host.ClusterType.Name, one.Namespace}]
	}
	return waits
}

func (t *Templates) encryptedFiles(subject Subject) []AssignmentFile {
	var elsewhere []string
	if role := t.roles[subject.Assignment]; role != nil {
		elsewhere = role.secretsElsewhere
	}
	var files []AssignmentFile
	for i := range subject.Encrypted {
		if one := &subject.Encrypted[i]; !slices.Contains(elsewhere, one.Name) {
			files = append(files, AssignmentFile{Name: one.FileName(), Content: []byte(one.Text)})
		}
	}
	slices.SortFunc(files, func(a, b AssignmentFile) int { return cmp.Compare(a.Name, b.Name) })
	return files
}

// addEncrypted adds the objects of encrypted files, which no other file may contain.
func (c *folderCheck) addEncrypted() {
	for i := range c.subject.Encrypted {
		one := &c.subject.Encrypted[i]
		group, kind := one.Object()
		c.objects[objects.Identity{Group: group, Kind: kind, Namespace: one.Namespace, Name: one.Name}] = position{one.FileName(), 1}
	}
}
