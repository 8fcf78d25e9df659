package delivery

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// ErrTwice is the error of a second flotilla_assignment of one name at one place.
var ErrTwice = errors.New("another flotilla_assignment of this configuration has the same name, repository, branch and path")

// owners remembers which owners this process has planned and written. The zero value is ready.
type owners struct {
	mu      sync.Mutex
	planned map[ownerKey]Place
	written map[ownerKey]bool
	created map[ownerKey]bool
	deposed map[ownerKey]bool
	read    map[ownerKey]int // how many objects of the state
	ends    map[ownerKey]bool
}

type ownerKey struct {
	place Place
	name  string
}

func keyOfOwner(owner Owner) ownerKey {
	return ownerKey{place: Place{URL: spelling(owner.Place.URL), Branch: owner.Place.Branch, Path: owner.Place.Path}, name: owner.Name}
}

// Planned notes that an owner is planned, and fails for a second one of its name. Terraform plans a resource that it
// replaces twice: that is for the caller to know.
func (c *Client) Planned(owner Owner) error {
	o := &c.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	key := keyOfOwner(owner)
	if _, again := o.planned[key]; again {
		return fmt.Errorf("%w: %q on branch %q at path %q", ErrTwice, owner.Name, owner.Place.Branch, owner.Place.Path)
	}
	if o.planned == nil {
		o.planned = map[ownerKey]Place{}
	}
	o.planned[key] = owner.Place
	return nil
}

// namesakes are the places at other URLs of planned owners of the same name, branch and path: mirrors, may be.
func (o *owners) namesakes(owner Owner) []Place {
	o.mu.Lock()
	defer o.mu.Unlock()
	own := keyOfOwner(owner)
	var places []Place
	for key, place := range o.planned {
		if key != own && key.name == own.name && key.place.Branch == own.place.Branch && key.place.Path == own.place.Path {
			places = append(places, place)
		}
	}
	return places
}

// twice fails for an owner at a mirror of a place where another planned owner of its name is: the tip of the
// one is the tip of the other. afresh looks at both again.
func (c *Client) twice(ctx context.Context, owner Owner, afresh bool) error {
	for _, place := range c.owners.namesakes(owner) {
		if afresh {
			c.looks.forget(c.remote(place))
			c.looks.forget(c.remote(owner.Place))
		}
		there, err := c.tip(ctx, place)
		if err != nil {
			continue // it will be said of that owner
		}
		here, err := c.tip(ctx, owner.Place)
		if err != nil {
			return err
		}
		if here != "" && here == there {
			return fmt.Errorf("%w: %q on branch %q at path %q, which is also at %s", ErrTwice, owner.Name, owner.Place.Branch, owner.Place.Path, place.URL)
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
		return fmt.Errorf("%w: %q on branch %q at path %q; nothing of this one was written", ErrTwice, owner.Name, owner.Place.Branch, owner.Place.Path)
	}
	if o.written == nil {
		o.written, o.created = map[ownerKey]bool{}, map[ownerKey]bool{}
	}
	o.written[key] = true
	o.created[key] = o.created[key] || creates
	return nil
}

// livesOn says whether this process has created the owner anew, or plans it: then the destroy of an object of that
// owner is the second half of a replacement, or one object of two, and leaves what is there.
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

// PlansEnd notes that the end of an object is planned.
func (c *Client) PlansEnd(owner Owner) {
	o := &c.owners
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ends == nil {
		o.ends = map[ownerKey]bool{}
	}
	o.ends[keyOfOwner(owner)] = true
}

// HasAnother says whether the state has another object of an owner that is planned and does not end: one that was
// deposed by a replacement, which was interrupted before it could end it.
func (c *Client) HasAnother(owner Owner) bool {
	c.owners.mu.Lock()
	defer c.owners.mu.Unlock()
	key := keyOfOwner(owner)
	return c.owners.read[key] > 1 || c.owners.ends[key]
}

// PlansDeposed says whether the end of an owner that is being planned is that of an object that was replaced
// with create_before_destroy: in a process that writes, Terraform plans no other end.
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

// isPlanned says whether this process plans an owner of this name at this place.
func (o *owners) isPlanned(owner Owner) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, planned := o.planned[keyOfOwner(owner)]
	return planned
}

// IsSamePlace says whether two places are one, or mirrors of each other. The name of the repository decides
// where nobody can be asked.
func (c *Client) IsSamePlace(ctx context.Context, one, other Place) bool {
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
