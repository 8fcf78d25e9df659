package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
)

// Signature is the author and committer of a commit.
type Signature struct {
	Name  string
	Email string
}

// Check returns an error for characters that a commit cannot contain.
func (s Signature) Check() error {
	for _, text := range []string{s.Name, s.Email} {
		if strings.ContainsAny(text, "<>") || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return errors.New("the author's name or email has a control character, \"<\" or \">\"")
		}
	}
	return nil
}

// ParseSignature parses "Name <email> 1700000000 +0100". Invalid parts are zero.
func ParseSignature(line string) (Signature, time.Time) {
	line = strings.ToValidUTF8(line, "")
	name, rest, _ := strings.Cut(line, "<")
	email, rest, _ := strings.Cut(rest, ">")
	by := Signature{Name: strings.TrimSpace(name), Email: email}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return by, time.Time{}
	}
	seconds, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		return by, time.Time{}
	}
	return by, time.Unix(seconds, 0).UTC()
}

// NewCommit is a commit to create.
type NewCommit struct {
	Tree    Hash
	Parents []Hash
	Author  Signature // and committer
	Time    time.Time
	Message string
}

func (c NewCommit) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, parent := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	// The machine's time zone stays private.
	for _, role := range []string{"author", "committer"} {
		fmt.Fprintf(&b, "%s %s <%s> %d +0000\n", role, c.Author.Name, c.Author.Email, c.Time.Unix())
	}
	fmt.Fprintf(&b, "\n%s", c.Message)
	return b.Bytes()
}

// AddCommit adds a commit. The signer may be nil.
func (p *Pack) AddCommit(c NewCommit, signer *Signer) (Hash, error) {
	content := c.encode()
	if signer != nil {
		signature, err := signer.sign(content, c.Time)
		if err != nil {
			return Hash{}, err
		}
		content = withSignature(content, signature)
	}
	id := NewHasher().object(plumbing.CommitObject, content)
	p.add(id, plumbing.CommitObject, content)
	return id, nil
}

// CommitHead is the header of a commit.
type CommitHead struct {
	Tree    Hash
	Parents []Hash
	Time    time.Time // of the committer; zero if invalid
}

var errMalformedCommit = errors.New("is malformed (git fsck tells more)")

// ParseCommitHead parses the header of a commit.
func ParseCommitHead(content []byte) (CommitHead, error) {
	line, rest, _ := bytes.Cut(content, []byte("\n"))
	text, ok := bytes.CutPrefix(line, []byte("tree "))
	tree, err := ParseID(string(text))
	if !ok || err != nil {
		return CommitHead{}, errMalformedCommit
	}
	head := CommitHead{Tree: tree}
	for {
		line, rest, _ = bytes.Cut(rest, []byte("\n"))
		text, ok := bytes.CutPrefix(line, []byte("parent "))
		if !ok {
			break
		}
		parent, err := ParseID(string(text))
		if err != nil {
			return CommitHead{}, errMalformedCommit
		}
		head.Parents = append(head.Parents, parent)
	}
	for ; len(line) > 0; line, rest, _ = bytes.Cut(rest, []byte("\n")) {
		if by, ok := bytes.CutPrefix(line, []byte("committer ")); ok {
			_, head.Time = ParseSignature(string(by))
			break
		}
	}
	return head, nil
}

// CheckCommit refuses anything but full ids: a short one may become ambiguous.
func CheckCommit(text string) error {
	if _, err := ParseID(text); err != nil {
		return fmt.Errorf("%w; it is the full id of a commit, 40 hexadecimal digits", err)
	}
	return nil
}

// Beyond returns the commit and its ancestors that the tip lacks, in one request.
func (t *Tip) Beyond(ctx context.Context, commit Hash) (map[Hash]CommitHead, error) {
	if commit.IsZero() || commit == t.Commit {
		return nil, nil
	}
	commits, err := t.fetchCommits(ctx, func() *packp.UploadPackRequest {
		request := t.request([]Hash{commit}, 0)
		if !t.Commit.IsZero() {
			request.Haves = []Hash{t.Commit}
		}
		return request
	})
	if err != nil {
		return nil, fmt.Errorf("its commits cannot be compared: %w", err)
	}
	return commits, nil
}

// fetchCommits returns the received commits, with as few other objects as possible.
func (f *fetcher) fetchCommits(ctx context.Context, ask func() *packp.UploadPackRequest) (map[Hash]CommitHead, error) {
	objects := map[Hash]RawObject{}
	err := f.inSteps(ctx, func() error {
		clear(objects)
		return f.fetchInto(ctx, ask(), objects)
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(f.objectStore, objects)
	commits := map[Hash]CommitHead{}
	for id, o := range objects {
		if o.Kind != plumbing.CommitObject {
			continue
		}
		if commits[id], err = ParseCommitHead(o.Content); err != nil {
			return nil, fmt.Errorf("commit %s: %w", id, err)
		}
	}
	return commits, nil
}

// HasParent reports whether one of the commits has this parent.
func HasParent(commits map[Hash]CommitHead, parent Hash) bool {
	for _, c := range commits {
		if slices.Contains(c.Parents, parent) {
			return true
		}
	}
	return false
}

// FirstDepth is the depth of the first request. Each further one quadruples it, up to LastDepth: some megabytes.
const (
	FirstDepth = 64
	LastDepth  = 16 << 10
)

// lastTreesDepth is LastDepth for commits with all their trees.
const lastTreesDepth = 1 << 10

// past returns a Tip that fetches the last commits to a depth. Their refusal does not affect the original.
func (t *Tip) past(depth int) *Tip {
	same := *t.fetcher
	return &Tip{Commit: t.Commit, Root: t.Root, from: t.from, depth: depth, fetcher: &same}
}

// PastCommits fetches the last commits to a depth, without files, and without trees if NeedPast can fetch those. complete
// means that the server cannot limit the depth and sent all.
func (t *Tip) PastCommits(ctx context.Context, depth int) (commits map[Hash]CommitHead, complete bool, err error) {
	past := t.past(depth)
	commits, err = past.fetchCommits(ctx, func() *packp.UploadPackRequest { return past.shallow(past.from, depth, 0) })
	return commits, !t.capabilities.Supports(capability.Shallow), err
}

// MaxPast returns the largest useful depth for PastCommits.
func (t *Tip) MaxPast() int {
	if t.takesIDs() && t.step < allTrees {
		return LastDepth
	}
	return lastTreesDepth
}

// NeedPast is Need after PastCommits with this depth. After a refusal it fetches more of the past, not of the tip.
func (t *Tip) NeedPast(ctx context.Context, ids []Hash, depth int) error {
	return t.past(depth).Need(ctx, ids)
}

// NeedRecent is Need for objects of the tip or of recent commits. Not all servers give objects by id.
func (t *Tip) NeedRecent(ctx context.Context, ids []Hash) error {
	err := t.Need(ctx, ids)
	for depth := FirstDepth; err != nil && depth <= lastTreesDepth; depth *= 4 {
		if t.Commit.IsZero() || t.takesIDs() || ctx.Err() != nil || Classify(err) != nil {
			break
		}
		before := len(t.objectStore)
		if err = t.NeedPast(ctx, ids, depth); len(t.objectStore) == before {
			break
		}
	}
	return err
}

// OpenPast returns a commit in the history. ErrCommit means that it is not there, or not among the last LastDepth commits if
// the server gives no objects by id.
func (t *Tip) OpenPast(ctx context.Context, commit Hash) (*Tip, error) {
	unreachable := fmt.Errorf("%w: commit %s is not in the history of the branch", ErrCommit, commit)
	if commit == t.Commit {
		return t, nil
	}
	if t.Commit.IsZero() {
		return nil, unreachable
	}
	for depth, known := FirstDepth, 0; ; depth *= 4 {
		commits, complete, err := t.PastCommits(ctx, depth)
		if err != nil {
			return nil, err
		}
		if head, ok := commits[commit]; ok {
			past := t.past(depth)
			past.Commit, past.Root = commit, head.Tree
			return past, nil
		}
		if len(commits) == known || complete {
			return nil, unreachable
		}
		if depth >= LastDepth {
			return t.openByID(ctx, commit)
		}
		known = len(commits)
	}
}

// openByID is OpenPast for commits below LastDepth.
func (t *Tip) openByID(ctx context.Context, commit Hash) (*Tip, error) {
	past, heads := t.past(1), map[Hash]CommitHead{}
	if t.takesIDs() {
		newer, err := past.Beyond(ctx, commit)
		if err == nil && len(newer) == 0 {
			heads, err = past.fetchCommits(ctx, func() *packp.UploadPackRequest { return past.shallow(commit, 1, 0) })
		}
		if err != nil && (ctx.Err() != nil || Classify(err) != nil) {
			return nil, err
		}
	}
	head, ok := heads[commit]
	if !ok {
		return nil, fmt.Errorf("%w: commit %s is not among the last %d commits of the branch", ErrCommit, commit, LastDepth)
	}
	past.Commit, past.Root, past.from = commit, head.Tree, commit
	return past, nil
}
