package forge

import (
	"errors"
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// The mark is an HTML comment on a line of the body, which only Bitbucket shows.
const (
	markBegin = "<!-- flotilla-assignment: "
	markEnd   = " -->"
)

const maxOwner = 500

func markOf(owner string) string { return markBegin + owner + markEnd }

// ownerOf reads the first mark, which Ensure writes. Others may have written the rest.
func ownerOf(body string) string {
	for line := range strings.Lines(body) {
		owner, ok := strings.CutPrefix(strings.TrimSpace(line), markBegin)
		if !ok {
			continue
		}
		if owner, ok = strings.CutSuffix(owner, markEnd); ok && checkOwner(owner) == nil {
			return owner
		}
		return ""
	}
	return ""
}

func checkOwner(owner string) error {
	switch {
	case owner == "" || strings.TrimSpace(owner) != owner:
		return fmt.Errorf("owner %q is empty, or begins or ends with a space", owner)
	case len(owner) > maxOwner:
		return fmt.Errorf("the owner is longer than %d bytes", maxOwner)
	case strings.ContainsAny(owner, "<>"):
		return fmt.Errorf("owner %q has a < or a >", owner)
	case !wording.IsLine(owner):
		return errors.New("the owner has a control character or is not UTF-8")
	}
	return nil
}

func (s Selector) check() error {
	if err := checkOwner(s.Owner); err != nil {
		return err
	}
	switch {
	case s.Base == "":
		return errors.New("the base branch is empty")
	case s.Head == "":
		return errors.New("the head branch is empty")
	case s.Base == s.Head:
		return fmt.Errorf("branch %q is both base and head of the pull request", s.Base)
	case strings.ContainsAny(s.Head, ":"): // another account's branch
		return fmt.Errorf("head branch %q has a colon; use another name", s.Head)
	}
	return nil
}
