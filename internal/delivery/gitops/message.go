package gitops

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

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
	commits := map[string]bool{}
	for _, k := range back {
		commits[c.rollbackCommit(k)] = true
	}
	if len(commits) > 1 {
		return fmt.Sprintf("%d rolled back to earlier commits", len(back))
	}
	return fmt.Sprintf("%d rolled back to %s", len(back), c.rollbackCommit(back[0]))
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
