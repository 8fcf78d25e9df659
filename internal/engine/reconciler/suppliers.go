package reconciler

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// suppliers are the kinds that bring Secrets onto clusters. They are of no reconciler: whichever applies a folder with an
// object of them, another controller makes the Secret.
var suppliers = []Kind{
	{
		Group: secretservice.ExternalSecret.Group, Kind: secretservice.ExternalSecret.Kind,
		Versions: secretservice.ExternalSecret.Versions, Resource: secretservice.ExternalSecret.Resource,
		Role: Supplier, Status: (*Listing).externalSecret, Retried: time.Minute,
	},
	{
		Group: "bitnami.com", Kind: "SealedSecret", Versions: "v1alpha1", Resource: "sealedsecrets",
		Role: Supplier, Status: (*Listing).sealedSecret,
	},
}

// Suppliers are the kinds that bring Secrets onto clusters. Their objects are read only where records name some.
func Suppliers() []Kind { return slices.Clone(suppliers) }

// withoutSecret are the reasons with which an ExternalSecret is ready although there is no Secret.
var withoutSecret = []string{"SecretDeleted", "SecretMissing", "ResourceDeleted", "ResourceMissing"}

// externalSecret is the status of an ExternalSecret. External Secrets Operator writes what it has synced as
// "<generation>-<hash of labels and annotations>", and no generation at the condition: until it has looked, what is ready is
// what the spec named before, and so is the Secret.
func (o *Listing) externalSecret(e *Object) verdict.Status {
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
		policy == "CreatedOnce" { // else it moves each time that the store is asked
		own.Since = verdict.Latest(own.Since, e.time("status", "refreshTime"))
	}
	return own
}

// sealedSecret is the status of a SealedSecret. Its controller writes one only where it may, which it does by default.
func (o *Listing) sealedSecret(s *Object) verdict.Status {
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
