package reconciler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/secretservice"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/verdict"
)

// suppliers create Secrets. Any reconciler may apply the object, and another controller creates the Secret.
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

// Suppliers returns the kinds that create Secrets. Only records name the objects to read.
func Suppliers() []ObjectKind { return slices.Clone(suppliers) }

// withoutSecret are the reasons of ready ExternalSecrets that have no Secret.
var withoutSecret = []string{"SecretDeleted", "SecretMissing", "ResourceDeleted", "ResourceMissing"}

// externalSecretStatus compares the synced version with the spec: External Secrets Operator records
// "<generation>-<hash of labels and annotations>", and no generation in the condition.
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
	// Other policies move the time at each refresh.
	if policy := e.text("spec", "refreshPolicy"); policy == "OnChange" || policy == "CreatedOnce" {
		own.Since = verdict.Latest(own.Since, e.time("status", "refreshTime"))
	}
	return own
}

func sealedSecretStatus(l *Listing, s *ListedObject) verdict.Status {
	synced, has := s.condition("Synced")
	switch waiting := cmp.Or(s.stopped(synced.changed), s.pending(synced, has)); {
	case waiting.Verdict != "":
		return waiting
	case synced.status != "True":
		return s.say(verdict.Failed, synced.changed, "has no Secret: %s", whyOf(synced.message, synced.reason))
	}
	return s.say(verdict.Ready, synced.changed, "is ready")
}
