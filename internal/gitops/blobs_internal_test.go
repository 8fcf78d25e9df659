package gitops

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"
)

// Blobs is how many blobs were fetched for a view.
func (v *OwnerView) Blobs() (n int) {
	release, err := v.hold(context.Background())
	if err != nil {
		panic(err)
	}
	defer release()
	for _, o := range v.work.Fetched() {
		if o.Kind == plumbing.BlobObject {
			n++
		}
	}
	return n
}
