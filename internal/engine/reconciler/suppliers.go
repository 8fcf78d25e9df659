package reconciler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// suppliers are the kinds that create Secrets. They belong to no reconciler: any reconciler may apply the object, and
// another controller creates the Secret.
var suppliers = []ObjectKind{
	{
		Group: secretservice.ExternalSecret.Group, Kind: secretservice.ExternalSecret.Kind,
		Versions: secretservice.ExternalSecret.Versions, Resource: secretservice.ExternalSecret.Resource,
		Role: Supplier, Status: externalSecretStatus, Retried: time.Minute,
	},
	{
		Group: "bitnami.com", Kind: "SealedSecret", Versions: "v1alpha1", Resource: "sealedsecrets",
		Role: Supplier, Status: sealedSecretStatus,
	},
}

// Suppliers returns the kinds that create Secrets. Their objects are read only if records name them.
func Suppliers() []ObjectKind { return slices.Clone(suppliers) }

// withoutSecret are the reasons of ready ExternalSecrets that have no Secret.
var withoutSecret = []string{"SecretDeleted", "SecretMissing", "ResourceDeleted", "ResourceMissing"}

// externalSecretStatus returns the status of an ExternalSecret. External Secrets Operator records the synced version
// as "<generation>-<hash of labels and annotations>", and no generation in the condition. Until it matches, readiness
// and Secret belong to the previous spec.
func externalSecretStatus(l *Listing, e *ListedObject) verdict.Status {
	own := e.ready(nil)
	if own.Verdict != verdict.Ready {
		return own
	}
	ready, _ := e.condition("Ready")
	generation, _ := e.number("metadata", "generation")
	switch {
	case slices.Contains(withoutSecret, ready.reason):
		return e.say(verdict.Failed, ready.changed, "has no Secret: %s", whyOf(ready.message, ready.reason))
	case !strings.HasPrefix(e.text("status", "syncedResourceVersion"), fmt.Sprintf("%d-", generation)):
		return e.say(verdict.Progressing, ready.changed, "was changed after its Secret was written")
	}
	if policy := e.text("spec", "refreshPolicy"); policy == "OnChange" ||
		policy == "CreatedOnce" { // other policies move it at each refresh
		own.Since = verdict.Latest(own.Since, e.time("status", "refreshTime"))
	}
	return own
}

// sealedSecretStatus returns the status of a SealedSecret. Its controller writes a status by default, if it is
// permitted to.
func sealedSecretStatus(l *Listing, s *ListedObject) verdict.Status {
	synced, has := s.condition("Synced")
	switch {
	case s.text("metadata", "deletionTimestamp") != "":
		return s.say(verdict.Progressing, s.time("metadata", "deletionTimestamp"), "is being deleted")
	case !has:
		return s.say(verdict.Progressing, s.time("metadata", "creationTimestamp"), "has no status yet")
	case !s.isCurrent(synced):
		return s.say(verdict.Progressing, synced.changed, "was changed after its status was written")
	case synced.status != "True":
		return s.say(verdict.Failed, synced.changed, "has no Secret: %s", whyOf(synced.message, synced.reason))
	}
	return s.say(verdict.Ready, synced.changed, "is ready")
}
