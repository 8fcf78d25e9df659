package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrDuplicate is the error of a second flotilla_assignment of one name at one location.
var ErrDuplicate = errors.New("another flotilla_assignment of this configuration has the same name, repository, branch and path")

// owners remembers which owners this process has planned and written. The zero value is ready.
type owners struct {
	mu      sync.Mutex
	planned map[ownerKey]Location
	written map[ownerKey]bool
	created map[ownerKey]bool
	deposed map[ownerKey]bool
	read    map[ownerKey]int // how many objects of the state
	ends    map[ownerKey]bool
}

type ownerKey struct {
	location Location
	name     string
}

func keyOfOwner(owner Owner) ownerKey {
	return ownerKey{location: Location{URL: spelling(owner.Location.URL), Branch: owner.Location.Branch, Path: owner.Location.Path}, name: owner.Name}
}

// Planned notes that an owner is planned, and fails for a second one of its name. Terraform plans a resource that it
// replaces twice; the caller has to recognise that.
func (c *Client) Planned(owner Owner) error {
	o := &c.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	key := keyOfOwner(owner)
	if _, again := o.planned[key]; again {
		return fmt.Errorf("%w: %q on branch %q at path %q", ErrDuplicate, owner.Name, owner.Location.Branch, owner.Location.Path)
	}
	if o.planned == nil {
		o.planned = map[ownerKey]Location{}
	}
	o.planned[key] = owner.Location
	return nil
}

// sameNames are the locations, at other URLs, of planned owners of the same name, branch and path. They may be
// mirrors.
func (o *owners) sameNames(owner Owner) []Location {
	o.mu.Lock()
	defer o.mu.Unlock()
	own := keyOfOwner(owner)
	var locations []Location
	for key, location := range o.planned {
		if key != own && key.name == own.name && key.location.Branch == own.location.Branch && key.location.Path == own.location.Path {
			locations = append(locations, location)
		}
	}
	return locations
}

// checkDuplicate fails for an owner at a mirror of a location where another planned owner of its name is: the tip
// of the one is the tip of the other. With afresh both are read again.
func (c *Client) checkDuplicate(ctx context.Context, owner Owner, afresh bool) error {
	for _, location := range c.owners.sameNames(owner) {
		if afresh {
			c.looks.forget(c.remote(location))
			c.looks.forget(c.remote(owner.Location))
		}
		there, err := c.tip(ctx, location)
		if err != nil {
			continue // the error is reported for that owner
		}
		here, err := c.tip(ctx, owner.Location)
		if err != nil {
			return err
		}
		if here != "" && here == there {
			return fmt.Errorf("%w: %q on branch %q at path %q, which is also at %s", ErrDuplicate, owner.Name, owner.Location.Branch, owner.Location.Path, location.URL)
		}
	}
	return nil
}

// writes notes that an owner is created or changed, and fails for a second one of its name.
func (o *owners) writes(owner Owner, creates bool) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := keyOfOwner(owner)
	if o.written[key] {
		return fmt.Errorf("%w: %q on branch %q at path %q; nothing of this one was written", ErrDuplicate, owner.Name, owner.Location.Branch, owner.Location.Path)
	}
	if o.written == nil {
		o.written, o.created = map[ownerKey]bool{}, map[ownerKey]bool{}
	}
	o.written[key] = true
	o.created[key] = o.created[key] || creates
	return nil
}

// livesOn reports whether this process has created the owner again, or plans it: then the destroy of an object of that
// owner is the second half of a replacement, or one object of two, and removes nothing.
func (o *owners) livesOn(owner Owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	key := keyOfOwner(owner)
	_, planned := o.planned[key]
	return planned || o.created[key]
}

// Read notes that an object of the state is read.
func (c *Client) Read(owner Owner) {
	o := &c.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.read == nil {
		o.read = map[ownerKey]int{}
	}
	o.read[keyOfOwner(owner)]++
}

// PlansEnd notes that the destroy of an object is planned.
func (c *Client) PlansEnd(owner Owner) {
	o := &c.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ends == nil {
		o.ends = map[ownerKey]bool{}
	}
	o.ends[keyOfOwner(owner)] = true
}

// HasAnother reports whether the state has another object of an owner that is planned and is not destroyed: one that
// was deposed by a replacement which was interrupted before it could destroy the object.
func (c *Client) HasAnother(owner Owner) bool {
	c.owners.mu.Lock()
	defer c.owners.mu.Unlock()
	key := keyOfOwner(owner)
	return c.owners.read[key] > 1 || c.owners.ends[key]
}

// PlansDeposed reports whether the destroy of an owner that is being planned is that of an object that was replaced
// with create_before_destroy: in a process that writes, Terraform plans no other destroy.
func (c *Client) PlansDeposed(owner Owner) bool {
	o := &c.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.written) == 0 {
		return false
	}
	if o.deposed == nil {
		o.deposed = map[ownerKey]bool{}
	}
	o.deposed[keyOfOwner(owner)] = true
	return true
}

// IsDeposed says whether PlansDeposed has said so of the owner.
func (c *Client) IsDeposed(owner Owner) bool {
	c.owners.mu.Lock()
	defer c.owners.mu.Unlock()
	return c.owners.deposed[keyOfOwner(owner)]
}

// isPlanned says whether this process plans an owner of this name at this location.
func (o *owners) isPlanned(owner Owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, planned := o.planned[keyOfOwner(owner)]
	return planned
}

// IsSameLocation reports whether two locations are one, or mirrors of each other. Their URLs decide where the
// repositories cannot be reached.
func (c *Client) IsSameLocation(ctx context.Context, one, other Location) bool {
	if one.Path != other.Path || one.Branch != other.Branch {
		return false
	}
	if spelling(one.URL) == spelling(other.URL) {
		return true
	}
	here, err := c.tip(ctx, one)
	if err != nil || here == "" {
		return false
	}
	there, err := c.tip(ctx, other)
	return err == nil && here == there
}
