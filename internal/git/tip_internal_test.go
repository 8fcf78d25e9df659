package git

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
)

// brokenWire answers with a branch whose commit cannot be fetched, or not at all.
type brokenWire struct {
	advertises bool
	open       int // number of open connections
}

func (w *brokenWire) references(context.Context) (*packp.AdvRefs, error) {
	w.open++
	if !w.advertises {
		return nil, errors.New("broken")
	}
	advertised := packp.NewAdvRefs()
	advertised.References["refs/heads/main"] = plumbing.NewHash("0123456789012345678901234567890123456789")
	return advertised, nil
}

func (w *brokenWire) fetch(context.Context, *packp.UploadPackRequest, func(io.Reader) error) error {
	return errors.New("broken")
}

func (w *brokenWire) push(context.Context, *Pack, prepareFunc) (*packp.ReportStatus, error) {
	return nil, errors.New("broken")
}

func (w *brokenWire) close() { w.open = 0 }

// An SSH connection stays open until its wire is closed.
func TestAnErrorLeavesNoConnectionOpen(t *testing.T) {
	t.Parallel()
	for _, advertises := range []bool{false, true} {
		w := &brokenWire{advertises: advertises}
		if _, err := openTip(t.Context(), w, "main", 1, func(context.Context, string, map[string]any) {}); err == nil {
			t.Error("no error")
		}
		if w.open != 0 {
			t.Errorf("a wire that advertises %t is still open", advertises)
		}
	}
}
