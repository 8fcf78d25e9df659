package gitops

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"
)

// Blobs counts the blobs fetched for a view.
func (v *OwnerView) Blobs() int {
	count, err := withTip(context.Background(), v.Branch, func() (count int, _ error) {
		for _, o := range v.work.Fetched() {
			if o.Kind == plumbing.BlobObject {
				count++
			}
		}
		return count, nil
	})
	if err != nil {
		panic(err)
	}
	return count
}
