package reconciler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const (
	syncGroup     = "configsync.gke.io"
	syncDeletion  = "configsync.gke.io/deletion-propagation-policy"
	syncFinalizer = "configsync.gke.io/reconciler"
)

// configSync is Config Sync 1.20 and later on each cluster.
var configSync = Reconciler{
	Name: "config-sync", Product: "Config Sync", NoSecretValues: "Config Sync deploys no charts of Flotilla",
	Namespace: "config-management-system",
	Reserved:  []string{"config-management-monitoring", "resource-group-system"},
	NoRefresh: "Config Sync offers no way to ask it: set a shorter interval of flotilla_agent",
	NoSOPS:    "Config Sync decrypts nothing",
	NoObjects: noObjects,
	OneImage:  true,
	// The name is part of a label: "config-management-system_<name>".
	LongestName: 38,
	Decisive:    syncDecisive, Deployers: []string{"RootSync"}, ReadsJSON: true, RejectsDuplicates: true, NoFolder: noFolderSync,
	Agent: Agent{
		Objects: "config-sync", Group: syncGroup,
		Missing: "Config Sync is not installed there; install = the manifest of one of its releases brings it (config-sync-manifest.yaml)",
		Auth:    map[string]string{"github_app": "githubapp", "ssh_private_key": "ssh", "password": "token", "": "none"},
		NoFeedback: "cannot be set for Config Sync, which does not report to Git hosts: " +
			"ask the clusters themselves, by feedback = { clusters = true } of flotilla_compliance",
		Controllers: []Controller{
			{Name: "reconciler-manager", Without: "nothing is reconciled"},
			{Name: "resource-group-controller-manager", Without: "it is not known whether applied objects are ready"},
		},
	},
	Unordered: func(Manifests, Manifests, bool) string {
		return "Config Sync waits until another RootSync is set up, and not until what it applies is there"
	},
	Kinds: []ObjectKind{
		{
			Group: syncGroup, Kind: "RootSync", Versions: "v1beta1", Resource: "rootsyncs", Pointers: syncPointers,
			Role: Follows | Consumer | Maker, Makes: []string{"ResourceGroup"},
			Parameter: "root_sync", Settings: rootSyncSettings, For: (Git | OCI) & Plain, Removal: syncRemoval,
			Status: syncStatus, Running: syncRunning, Root: rootSyncRoot,
		},
		{
			Group: syncGroup, Kind: "RepoSync", Versions: "v1beta1", Resource: "reposyncs", Pointers: syncPointers,
			Role: Consumer | Maker, Makes: []string{"ResourceGroup"},
			Removal: syncRemoval, Status: syncStatus, Running: syncRunning,
		},
		{
			Group: "kpt.dev", Kind: "ResourceGroup", Versions: "v1alpha1", Resource: "resourcegroups", Role: Consumer,
			Status: resourceGroupStatus,
		},
	},
}

var syncDecisive = []Decisive{
	// A revision takes precedence over the branch, roleRefs reduce permissions, and a proxy is another server to read from.
	{Group: syncGroup, Kind: "RootSync", Fields: append(
		anyValue("spec", "git.revision", "override.roleRefs", "git.proxy", "git.noSSLVerify"),
		DecisiveField{"spec.override.statusMode", "disabled"},
	)},
}

// rootSyncSettings lists the fields of Config Sync 1.22's definition.
var rootSyncSettings = slices.Concat(
	decided(byManifests, "sourceFormat", "sourceType", "git.repo", "git.branch", "git.revision", "git.dir", "oci.image", "oci.dir", "helm"),
	decided(byFlotilla, "override.namespaceStrategy"),
	reaching(Secrets, "git.secretRef"),
	trusting(Secrets, "git.caCertSecretRef", "oci.caCertSecretRef"),
	reaching(Accounts, "git.gcpServiceAccountEmail", "oci.gcpServiceAccountEmail", "git.auth", "oci.auth", "override.roleRefs"),
	reaching(Programs, "override.enableShellInRendering"),
	trusting(Content, "git.proxy", "git.noSSLVerify"),
	reaching(Nothing,
		"git", "git.period", "oci", "oci.period", "override", "override.apiServerTimeout", "override.gitSyncDepth", "override.logLevels",
		"override.reconcileTimeout", "override.resources", "override.statusMode",
	),
)

// syncRemoval has no inventory, because only the ResourceGroup lists the applied objects. Pruning adds the finalizer
// too: the controller adds it only some time after the annotation.
var syncRemoval = Removal{Keeping: keepSync, Pruning: pruneSync, Waits: true}

func keepSync(live *unstructured.Unstructured) map[string]any {
	if live.GetAnnotations()[syncDeletion] != "Foreground" && !slices.Contains(live.GetFinalizers(), syncFinalizer) {
		return nil
	}
	left := slices.DeleteFunc(live.GetFinalizers(), func(one string) bool { return one == syncFinalizer })
	return map[string]any{"metadata": map[string]any{"annotations": map[string]any{syncDeletion: "Orphan"}, "finalizers": anyOf(left)}}
}

func pruneSync(live *unstructured.Unstructured) map[string]any {
	finalizers := live.GetFinalizers()
	if live.GetAnnotations()[syncDeletion] == "Foreground" && slices.Contains(finalizers, syncFinalizer) {
		return nil
	}
	if !slices.Contains(finalizers, syncFinalizer) {
		finalizers = append(finalizers, syncFinalizer)
	}
	return map[string]any{
		"metadata": map[string]any{"annotations": map[string]any{syncDeletion: "Foreground"}, "finalizers": anyOf(finalizers)},
	}
}

// syncStages are in order. The status has a commit and errors for each.
var syncStages = []string{"source", "rendering", "sync"}

// syncStatus combines the status, which tells about applying, with the ResourceGroup, which tells about readiness.
func syncStatus(l *Listing, s *ListedObject) verdict.Status {
	syncing, hasSynced := s.condition("Syncing")
	if at := s.time("metadata", "deletionTimestamp"); !at.IsZero() {
		if failure, is := s.condition("ReconcilerFinalizerFailure"); is && failure.status == "True" {
			return s.say(verdict.Failed, failure.changed, "cannot be deleted: %s", whyOf(failure.message, failure.reason))
		}
		return s.say(verdict.Progressing, at, "is being deleted")
	}
	if stalled, is := s.condition("Stalled"); is && stalled.status == "True" {
		return s.say(verdict.Failed, stalled.changed, "has stalled: %s", whyOf(stalled.message, stalled.reason))
	}
	if !s.isCurrent(condition{}) || !syncedCurrentSource(s) {
		return s.say(verdict.Progressing, syncing.changed, "was changed after its status was written")
	}
	if again, is := s.condition("Reconciling"); is && again.status == "True" {
		return s.say(verdict.Progressing, again.changed, "is not ready yet: %s", whyOf(again.message, again.reason))
	}
	if !hasSynced {
		return s.say(verdict.Progressing, s.time("metadata", "creationTimestamp"), "has no status yet")
	}
	if wrong := syncError(s); wrong != "" {
		return s.say(verdict.Failed, syncing.changed, "cannot be synced: %s", wrong)
	}
	last, now := s.text("status", "lastSyncedCommit"), newestSync(s)
	if last == "" || now != last {
		return s.say(verdict.Progressing, syncing.changed, "is syncing %s", cmp.Or(now, "nothing yet"))
	}
	own := s.say(verdict.Ready, syncing.changed, "is synced")
	if l.alone {
		return own
	}
	group := l.byName[ObjectName{"ResourceGroup", s.Namespace, s.Name}]
	if reason, unlisted := l.unlisted["ResourceGroup"]; unlisted {
		return s.say(verdict.Unknown, own.Since, "has a ResourceGroup that says whether everything is ready, which cannot be read: %s", reason)
	} else if group == nil {
		return s.say(verdict.Unknown, own.Since, "has no ResourceGroup, which would say whether everything is ready")
	}
	return verdict.Worst(own, resourceGroupStatus(l, group))
}

func syncedCurrentSource(s *ListedObject) bool {
	source := cmp.Or(s.text("spec", "sourceType"), "git")
	for _, field := range []string{"repo", "branch", "revision", "image", "dir"} {
		wanted, is := s.text("spec", source, field), s.text("status", "sync", source+"Status", field)
		if field == "dir" {
			wanted, is = clean(wanted), clean(is)
		}
		if wanted != "" && wanted != is && s.has("status", "sync", source+"Status") {
			return false
		}
	}
	return true
}

func newestSync(s *ListedObject) string {
	return cmp.Or(s.text("status", "source", "commit"), s.text("status", "rendering", "commit"), s.text("status", "sync", "commit"))
}

// syncError returns the first error of the newest commit and the number of errors. Failing to read the source is none
// while the newest known commit is synced.
func syncError(s *ListedObject) string {
	last, newest := s.text("status", "lastSyncedCommit"), newestSync(s)
	for _, stage := range syncStages {
		errors, commit := s.list("status", stage, "errors"), s.text("status", stage, "commit")
		count, _ := s.number("status", stage, "errorSummary", "totalCount")
		if count = max(count, int64(len(errors))); count == 0 || commit != "" && commit != newest ||
			stage == "source" && last != "" && newest == last {
			continue
		}
		first := whyOf("")
		if len(errors) > 0 {
			first = whyOf(errors[0].text("errorMessage"))
		}
		if count > 1 {
			first = fmt.Sprintf("%d errors, the first is %s", count, first)
		}
		return first
	}
	return ""
}

func resourceGroupStatus(l *Listing, g *ListedObject) verdict.Status {
	again, known := g.condition("Reconciling")
	switch {
	case !g.isCurrent(condition{}):
		return g.say(verdict.Progressing, again.changed, "was changed after its status was written")
	case !known:
		return g.say(verdict.Unknown, time.Time{}, "does not say whether applied objects are ready")
	}
	for _, state := range []struct {
		is   verdict.Verdict
		says string
		of   []string
	}{
		{verdict.Failed, "have failed", []string{"Failed"}},
		{verdict.Progressing, "are not ready yet", []string{"InProgress", "NotFound", "Terminating"}},
		{verdict.Unknown, "do not say whether they are ready", []string{"Unknown", ""}},
	} {
		if names := resourcesInStates(g, state.of...); len(names) > 0 {
			return g.say(state.is, again.changed, "has objects that %s: %s", state.says, wording.List(names, 3))
		}
	}
	if again.status == "True" {
		return g.say(verdict.Progressing, again.changed, "is not ready yet: %s", whyOf(again.message, again.reason))
	}
	return g.say(verdict.Ready, again.changed, "has only objects that are ready")
}

func resourcesInStates(g *ListedObject, states ...string) []string {
	return namesOf(g.list("status", "resourceStatuses"), func(resource jsonObject) (message string, is bool) {
		for _, one := range resource.list("conditions") {
			if one.text("status") == "True" {
				message = cmp.Or(message, one.text("message"))
			}
		}
		return message, slices.Contains(states, resource.text("status"))
	})
}

func rootSyncRoot(l *Listing, s *ListedObject, at folder.Location, dir string) (Root, bool) {
	branch := s.text("spec", "git", "branch")
	if revision := s.text("spec", "git", "revision"); revision != "" && revision != "HEAD" {
		branch = revision
	}
	if source := s.text("spec", "sourceType"); source != "" && source != "git" ||
		clean(s.text("spec", "git", "dir")) != dir || cmp.Or(branch, "master") != at.Branch {
		return Root{}, false
	}
	is := Applied{Root: s.ObjectName, Status: syncStatus(l, s), Hindered: s.hindered()}
	if wrong := s.list("status", "source", "errors"); is.Hindered.Verdict == "" && len(wrong) > 0 {
		since := s.time("status", "source", "lastUpdate")
		is.Hindered = s.say(verdict.Failed, since, "cannot read its source: %s", whyOf(wrong[0].text("errorMessage")))
	}
	if last := s.text("status", "lastSyncedCommit"); folder.IsCommit(last) {
		is.Commit = last
	}
	if newest := newestSync(s); folder.IsCommit(newest) && newest != is.Commit {
		is.Attempted = newest
	}
	for _, stage := range syncStages {
		for _, one := range s.list("status", stage, "errors") {
			is.NoFolder = is.NoFolder || strings.Contains(one.text("errorMessage"), noFolderSync)
			for _, of := range one.list("errorResources") {
				if of.text("name") != "" {
					is.Failing = append(is.Failing, ObjectName{of.text("gvk", "kind"), of.text("namespace"), of.text("name")})
				}
			}
		}
	}
	if group := l.byName[ObjectName{"ResourceGroup", s.Namespace, s.Name}]; group != nil {
		for _, one := range group.list("status", "resourceStatuses") {
			if one.text("status") == "Failed" {
				is.Failing = append(is.Failing, resourceName(one))
			}
		}
	}
	return Root{Applied: is, SameRepository: SameRepository(s.text("spec", "git", "repo"), at.URL)}, true
}

// syncRunning returns the synced content. The status has branch, image or chart only of the commit being synced.
func syncRunning(_ *Listing, s *ListedObject) Running {
	is := Running{Revision: s.text("status", "lastSyncedCommit")}
	if is.Revision == "" || s.text("status", "sync", "commit") != is.Revision {
		return is
	}
	of := func(field string) string {
		for _, source := range []string{"gitStatus", "ociStatus", "helmStatus"} {
			if text := s.text("status", "sync", source, field); text != "" {
				return text
			}
		}
		return ""
	}
	is.Chart, is.Version = of("chart"), cmp.Or(of("version"), of("revision"))
	if is.Version == "" || is.Version == "HEAD" {
		is.Version = of("branch")
	}
	if image := of("image"); strings.LastIndexByte(image, ':') > strings.LastIndexByte(image, '/') {
		is.Version = image[strings.LastIndexByte(image, ':')+1:]
	}
	if is.Version == is.Revision {
		is.Version = ""
	}
	return is
}

const noFolderSync = "failed to evaluate the config directory"
