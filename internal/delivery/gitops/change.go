package gitops

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// change is the effect of an edit on one tip. It is complete before any part is applied.
type change struct {
	edit      Edit
	at        time.Time
	abandoned []folder.Key // folders that stay without an owner
	hosts     []string     // with a changed marker or record
	adopted   []Conflict
	formerly  string // former name of the owner, if its records are handed over
	folders   []folder.Change

	newHosts, renamedHosts, goneHosts int // subsets of hosts

	held bool

	atTip   map[string]git.Hash // before the change, by host
	records map[string]git.Hash // and after it

	remove []string
	put    []putFile
	// isEmpty reports that the tip needs no commit. Records that differ only in statements about folders need none.
	isEmpty bool

	summary, body string // of the message; summary is the default subject
	trailer       string // names the owner or the claim
}

type putFile struct {
	path     string
	id       git.Hash
	content  []byte
	isFolder bool
	files    func() ([]git.File, error)
	exists   bool // in the repository already
}

func (c *change) keysWith(actions ...folder.Action) []folder.Key {
	var keys []folder.Key
	for _, change := range c.folders {
		if slices.Contains(actions, change.Action) {
			keys = append(keys, change.Key)
		}
	}
	return keys
}

func (c *change) rolledBackKeys() []folder.Key {
	return slices.DeleteFunc(c.keysWith(folder.Added, folder.Changed, folder.Moved), func(k folder.Key) bool {
		return c.edit.Hosts[k.Host][k.DeploymentTarget].Action != RollBack
	})
}

func (c *change) applyTo(ctx context.Context, w *layout) error {
	directories := make([]string, 0, len(c.put))
	for _, file := range c.put {
		directories = append(directories, git.Parent(file.path))
	}
	if err := w.Open(ctx, directories); err != nil {
		return err
	}
	for _, at := range c.remove {
		w.Remove(at)
	}
	for _, file := range c.put {
		mode := git.ModeFile
		if file.isFolder {
			mode = git.ModeTree
		}
		if err := w.Blocked(git.Parent(file.path)); err != nil {
			return err
		}
		if err := w.Put(file.path, mode, file.id); err != nil {
			return err
		}
	}
	return nil
}

// maxListed bounds the keys under one heading. A first deployment has 20,000, and servers show messages in full.
const maxListed = 500

func (c *change) message() string {
	return c.subject() + "\n\n" + c.body + "\n" + c.trailers()
}

func (c *change) subject() string {
	text := strings.ReplaceAll(strings.ReplaceAll(c.edit.Subject, "\r\n", "\n"), "\r", "\n")
	return cmp.Or(strings.TrimSpace(text), c.summary)
}

// summarize sets the summary, the body and the trailer of an edit of an owner.
func (c *change) summarize() {
	c.summary, c.body = c.edit.Owner.Name+": "+strings.Join(c.counts(), ", "), c.lists()
	c.trailer = "Flotilla-Assignment: " + c.edit.Owner.Name
	c.isEmpty = len(c.folders)+len(c.hosts)+len(c.adopted) == 0 && c.formerly == ""
}

func (c *change) counts() (parts []string) {
	if c.edit.Abandon {
		return []string{fmt.Sprintf("%d no longer managed", len(c.abandoned))}
	}
	if c.formerly != "" {
		parts = append(parts, "takes over from "+c.formerly)
	}
	parts = append(parts, folder.CountChanges(c.folders)...)
	parts = append(parts, wording.Counts([]int{len(c.adopted)}, "taken over")...)
	if back := c.rolledBackKeys(); len(back) > 0 {
		parts = append(parts, c.rollbackText(back))
	}
	if len(parts) == 0 {
		return c.hostCounts()
	}
	return parts
}

func (c *change) hostCounts() (counts []string) {
	repaired := len(c.hosts) - c.newHosts - c.renamedHosts - c.goneHosts
	for _, count := range []struct {
		number int
		what   string
	}{{c.newHosts, "added"}, {c.renamedHosts, "renamed"}, {c.goneHosts, "removed"}, {repaired, "repaired"}} {
		if count.number > 0 {
			counts = append(counts, wording.Count(count.number, "host", "hosts")+" "+count.what)
		}
	}
	return counts
}

func (c *change) rollbackText(back []folder.Key) string {
	commit := c.rollbackCommit(back[0])
	if slices.ContainsFunc(back, func(k folder.Key) bool { return c.rollbackCommit(k) != commit }) {
		return fmt.Sprintf("%d rolled back to earlier commits", len(back))
	}
	return fmt.Sprintf("%d rolled back to %s", len(back), commit)
}

func (c *change) rollbackCommit(k folder.Key) string {
	const short = 12
	return c.edit.Hosts[k.Host][k.DeploymentTarget].From[:short]
}

func (c *change) lists() string {
	var b strings.Builder
	writeList(&b, "Added", folder.KeyTexts(c.keysWith(folder.Added)))
	writeList(&b, "Changed", folder.KeyTexts(c.keysWith(folder.Changed)))
	writeList(&b, "Moved", c.movedTexts())
	writeList(&b, "Removed", folder.KeyTexts(c.keysWith(folder.Removed)))
	writeList(&b, "Taken over", c.adoptedTexts())
	writeList(&b, "Rolled back", c.rollbackTexts())
	writeList(&b, "No longer managed", folder.KeyTexts(c.abandoned))
	if b.Len() == 0 {
		writeList(&b, "Hosts", c.hosts)
	}
	return b.String()
}

func (c *change) movedTexts() (texts []string) {
	for _, change := range c.folders {
		if change.From != "" {
			texts = append(texts, fmt.Sprintf("%s, from %s", change.Key, change.Origin()))
		}
	}
	return texts
}

func (c *change) rollbackTexts() []string {
	back := c.rolledBackKeys()
	texts := folder.KeyTexts(back)
	for i, k := range back {
		texts[i] += " to " + c.rollbackCommit(k)
	}
	return texts
}

func writeList(b *strings.Builder, heading string, keys []string) {
	if len(keys) == 0 {
		return
	}
	if b.Len() > 0 {
		b.WriteString("\n")
	}
	fmt.Fprintf(b, "%s:\n", heading)
	for i, k := range keys {
		if i == maxListed {
			fmt.Fprintf(b, "- and %d more\n", len(keys)-maxListed)
			return
		}
		fmt.Fprintf(b, "- %s\n", k)
	}
}

func (c *change) trailers() string {
	text := c.trailer + "\n"
	for _, trailer := range []struct{ key, value string }{
		{"Flotilla-Environment: ", c.edit.Owner.Environment},
		{"Flotilla-Release: ", c.edit.Release},
		{"Flotilla-Source: ", string(c.edit.Source)},
		{"Flotilla-Run: ", c.edit.Run},
	} {
		if trailer.value != "" {
			text += trailer.key + trailer.value + "\n"
		}
	}
	return text
}

func (c *change) adoptedTexts() []string {
	var texts []string
	for _, a := range c.adopted {
		from := "no owner"
		switch {
		case a.OwnerPath != "":
			from = a.Owner + " at " + a.OwnerPath
		case a.Owner != "":
			from = a.Owner + " at the root"
		}
		texts = append(texts, fmt.Sprintf("%s/%s from %s", a.Host, a.DeploymentTarget, from))
	}
	return texts
}

// verifyMoved verifies moved and rolled back folders with final objects. Written folders are verified when they are packed.
func (c *change) verifyMoved(ctx context.Context, w *layout) error {
	if c.edit.Verify == nil {
		return nil
	}
	var trees []git.Hash
	for _, file := range c.put {
		if file.isFolder && file.exists {
			trees = append(trees, file.id)
		}
	}
	if err := w.Need(ctx, trees); err != nil {
		return err
	}
	found := map[string][]git.Entry{}
	var blobs []git.Hash
	for _, file := range c.put {
		if !file.isFolder || !file.exists {
			continue
		}
		entries, err := w.Entries(file.id)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			if entry.Name == folder.ObjectsFolder && entry.IsTree() {
				found[file.path] = entries
			}
		}
		for _, entry := range found[file.path] {
			if isYAML(entry) {
				blobs = append(blobs, entry.ID)
			}
		}
	}
	if err := w.Need(ctx, blobs); err != nil {
		return err
	}
	for at, entries := range found {
		files := []git.File{{Name: path.Join(folder.ObjectsFolder, folder.ObjectsFile)}}
		for _, entry := range entries {
			if !isYAML(entry) {
				continue
			}
			content, err := w.Blob(entry.ID)
			if err != nil {
				return err
			}
			files = append(files, git.File{Name: entry.Name, Content: content})
		}
		if err := c.edit.Verify(at, files); err != nil {
			return fmt.Errorf("folder %q: %w", at, err)
		}
	}
	return nil
}

func isYAML(e git.Entry) bool {
	return e.IsFile() && (strings.HasSuffix(e.Name, ".yaml") || strings.HasSuffix(e.Name, ".yml"))
}

// parseCommit skips malformed parts.
func parseCommit(content []byte) HistoryCommit {
	header, message, _ := bytes.Cut(content, []byte("\n\n"))
	var c HistoryCommit
	for line := range strings.Lines(string(header)) {
		line = strings.TrimSuffix(line, "\n")
		if by, ok := strings.CutPrefix(line, "author "); ok {
			c.Author, _ = git.ParseSignature(wording.Visible(by))
		}
	}
	text := wording.Visible(strings.TrimSpace(string(message))) // anybody with push access may have written it
	c.Subject, _, _ = strings.Cut(text, "\n")
	if c.readTrailers(text[strings.LastIndex(text, "\n\n")+1:]); len(c.Owners) == 0 {
		c.readTrailers(text) // a squash contains the messages of its commits
	}
	return c
}

func (c *HistoryCommit) readTrailers(text string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if owner, ok := strings.CutPrefix(line, "Flotilla-Assignment: "); ok && !slices.Contains(c.Owners, owner) {
			c.Owners = append(c.Owners, owner)
		}
		if release, ok := strings.CutPrefix(line, "Flotilla-Release: "); ok {
			c.Release = release
		}
		if source, ok := strings.CutPrefix(line, "Flotilla-Source: "); ok {
			c.Source = folder.ParseSource(source)
		}
		if run, ok := strings.CutPrefix(line, "Flotilla-Run: "); ok && folder.CheckText(run) == nil {
			c.Run = run
		}
	}
}
