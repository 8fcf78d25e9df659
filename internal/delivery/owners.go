package delivery

import (
	"errors"
	"fmt"
	"sync"
)

// ErrTwice is the error of a second flotilla_assignment of one name at one place.
var ErrTwice = errors.New("another flotilla_assignment of this configuration has the same name, repository, branch and path")

// owners remembers which owners this process has planned and written. The zero value is ready.
type owners struct {
	mu      sync.Mutex
	planned map[ownerKey]map[bool]string // by whether there is a state: what it was planned from
	written map[ownerKey]bool
	created map[ownerKey]bool
}

type ownerKey struct {
	place Place
	name  string
}

func keyOfOwner(owner Owner) ownerKey {
	return ownerKey{place: Place{URL: spelling(owner.Place.URL), Branch: owner.Place.Branch, Path: owner.Place.Path}, name: owner.Name}
}

// Planned notes that an owner is planned, and fails for a second one of its name. configuration is any
// text that is the same for the same resource. Terraform plans a resource that it replaces twice: with
// its state, and then, from the same configuration, without.
func (c *Client) Planned(owner Owner, hasState bool, configuration string) error {
	o := &c.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	key := keyOfOwner(owner)
	if o.planned == nil {
		o.planned = map[ownerKey]map[bool]string{}
	}
	if o.planned[key] == nil {
		o.planned[key] = map[bool]string{}
	}
	_, again := o.planned[key][hasState]
	other, both := o.planned[key][!hasState]
	if again || both && (hasState || other != configuration) {
		return fmt.Errorf("%w: %q on branch %q at path %q", ErrTwice, owner.Name, owner.Place.Branch, owner.Place.Path)
	}
	o.planned[key][hasState] = configuration
	return nil
}

// writes notes that an owner is created or changed, and fails for a second one of its name.
func (o *owners) writes(owner Owner, creates bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := keyOfOwner(owner)
	if o.written[key] {
		return fmt.Errorf("%w: %q on branch %q at path %q; nothing of this one was written", ErrTwice, owner.Name, owner.Place.Branch, owner.Place.Path)
	}
	if o.written == nil {
		o.written, o.created = map[ownerKey]bool{}, map[ownerKey]bool{}
	}
	o.written[key] = true
	o.created[key] = o.created[key] || creates
	return nil
}

// wasCreated says whether this process has created the owner anew: then the destroy of the one before is
// the second half of a replacement, and leaves what is there.
func (o *owners) wasCreated(owner Owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.created[keyOfOwner(owner)]
}
