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
)

// Signature is the author and committer of a commit.
type Signature struct {
	Name  string
	Email string
}

// Check reports characters that a commit cannot hold.
func (s Signature) Check() error {
	for _, text := range []string{s.Name, s.Email} {
		if strings.ContainsAny(text, "<>") || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return errors.New("the author's name or email has a control character, \"<\" or \">\"")
		}
	}
	return nil
}

// ParseSignature reads "Name <email> 1700000000 +0100", as far as it can be read.
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

// Commit is a commit to be created.
type Commit struct {
	Tree    Hash
	Parents []Hash
	Author  Signature // and committer
	Time    time.Time
	Message string
}

// encode writes the commit object.
func (c Commit) encode() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "tree %s\n", c.Tree)
	for _, parent := range c.Parents {
		fmt.Fprintf(&b, "parent %s\n", parent)
	}
	// UTC: the machine's time zone is not published.
	for _, role := range []string{"author", "committer"} {
		fmt.Fprintf(&b, "%s %s <%s> %d +0000\n", role, c.Author.Name, c.Author.Email, c.Time.Unix())
	}
	fmt.Fprintf(&b, "\n%s", c.Message)
	return b.Bytes()
}

// AddCommit adds the commit to the pack, signed if there is a signer.
func (p *Pack) AddCommit(c Commit, signer *Signer) (Hash, error) {
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

// CommitHead is what a commit refers to, and when it was committed.
type CommitHead struct {
	Tree    Hash
	Parents []Hash
	Time    time.Time // of the committer; zero where it cannot be read
}

var errMalformedCommit = errors.New("is malformed (git fsck tells more)")

// ParseCommitHead reads what a commit refers to, and its time.
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

func commitHeads(objects map[Hash]Object) (map[Hash]CommitHead, error) {
	commits := map[Hash]CommitHead{}
	for id, o := range objects {
		if o.Kind != plumbing.CommitObject {
			continue
		}
		head, err := ParseCommitHead(o.Content)
		if err != nil {
			return nil, fmt.Errorf("commit %s: %w", id, err)
		}
		commits[id] = head
	}
	return commits, nil
}

// CheckCommit reports what is wrong with the id of a commit. Only a full id will
// do: a short one may come to mean another commit when the branch grows.
func CheckCommit(text string) error {
	if _, err := ParseID(text); err != nil {
		return fmt.Errorf("%w; it is the full id of a commit, 40 hexadecimal digits", err)
	}
	return nil
}

// CommitText reads a commit that is here, as it is hashed.
func (f *fetcher) CommitText(id Hash) ([]byte, bool) {
	o, ok := f.objects[id]
	return o.Content, ok && o.Kind == plumbing.CommitObject
}

// Beyond returns the given commit and those of its ancestors that the tip does
// not contain; none when the tip contains it, and all where the tip has no commit. It takes one request.
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

// fetchCommits fetches commits, with as little else as the server lets us leave
// out, and returns those that came.
func (f *fetcher) fetchCommits(ctx context.Context, ask func() *packp.UploadPackRequest) (map[Hash]CommitHead, error) {
	objects := map[Hash]Object{}
	err := f.inSteps(ctx, func() error {
		clear(objects)
		return f.fetchInto(ctx, ask(), objects)
	})
	if err != nil {
		return nil, err
	}
	maps.Copy(f.objects, objects)
	return commitHeads(objects)
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

// RootOf returns the tree of a commit that the tip contains, having fetched the
// commit. ErrCommit says that the tip does not contain it.
func (t *Tip) RootOf(ctx context.Context, commit Hash) (Hash, error) {
	unreachable := fmt.Errorf("%w: commit %s is not in the history of the branch", ErrCommit, commit)
	if commit == t.Commit {
		return t.Root, nil
	}
	if t.Commit.IsZero() {
		return Hash{}, unreachable
	}
	if !t.takesIDs() {
		return t.rootBehind(ctx, commit, unreachable)
	}
	asked := t.apart() // a commit that the server does not know
	ahead, err := asked.Beyond(ctx, commit)
	if err == nil && len(ahead) > 0 {
		return Hash{}, unreachable
	}
	if err == nil {
		var found map[Hash]CommitHead
		found, err = asked.fetchCommits(ctx, func() *packp.UploadPackRequest { return asked.shallow(commit, 1, 0) })
		if head, ok := found[commit]; err == nil && ok {
			return head.Tree, nil
		}
	}
	if err != nil && (ctx.Err() != nil || errors.Is(Classify(err), ErrUnauthorized)) {
		return Hash{}, err
	}
	if err != nil && Classify(err) != nil {
		return Hash{}, fmt.Errorf("%w (%w)", unreachable, err)
	}
	return Hash{}, unreachable
}

// rootBehind is RootOf where the server gives what a branch refers to and
// nothing else.
func (t *Tip) rootBehind(ctx context.Context, commit Hash, unreachable error) (Hash, error) {
	known := map[Hash]CommitHead{}
	for depth := FirstDepth; ; depth *= 4 {
		before := len(known)
		commits, complete, err := t.Past(ctx, depth)
		if err != nil {
			return Hash{}, err
		}
		maps.Copy(known, commits)
		if head, ok := known[commit]; ok {
			return head.Tree, nil
		}
		if len(known) == before || depth >= LastDepth || complete {
			return Hash{}, unreachable
		}
	}
}
