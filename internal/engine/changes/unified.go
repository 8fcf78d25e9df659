package changes

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

const contextLines = 3

// Unified returns a unified diff, sorted by path: "a/" or "b/", prefix, host, deployment target and file. It has at
// most limit bytes, and a last line that counts omitted files. It shows values.
func Unified(folders []FolderChange, prefix string, limit int) string {
	folders = sortedFolders(folders)
	var b strings.Builder
	left, waiting := 0, 0
	for i := range folders {
		change := &folders[i]
		if change.WaitsFor != "" && !change.Removed {
			waiting++
			continue
		}
		base := path.Join(prefix, change.Host, change.DeploymentTarget)
		eachDifference(change, func(name string, before, after *folder.File) {
			if name == "" && before == nil && after == nil {
				return
			}
			if left > 0 { // omit all files after the first that does not fit
				left++
				return
			}
			if text := unifiedFile(path.Join(base, name), before, after); b.Len()+len(text) <= limit {
				b.WriteString(text)
			} else {
				left++
			}
		})
	}
	if left > 0 {
		fmt.Fprintf(&b, "# %s left out: the difference is longer than %d bytes.\n", counted(left, "more file"), limit)
	}
	if waiting > 0 {
		fmt.Fprintf(&b, "# %s not known yet.\n", counted(waiting, "folder"))
	}
	return b.String()
}

func unifiedFile(name string, before, after *folder.File) string {
	from, to := label("a/"+name), label("b/"+name)
	var old, wanted []byte
	head := "diff --git " + from + " " + to + "\n"
	if before == nil {
		from, head = "/dev/null", head+"new file mode 100644\n"
	} else {
		old = before.Content
	}
	if after == nil {
		to, head = "/dev/null", head+"deleted file mode 100644\n"
	} else {
		wanted = after.Content
	}
	if !isText(old) || !isText(wanted) {
		return head + "Binary files " + from + " and " + to + " differ\n"
	}
	text, err := udiff.ToUnified(from, to, string(old), udiff.Lines(string(old), string(wanted)), contextLines)
	if err != nil {
		return head + "# " + from + " and " + to + " differ\n" // impossible: the edits belong to this text
	}
	return head + text
}

// isText reports whether a terminal can display a file, which anyone with push access may have written.
func isText(content []byte) bool {
	text := strings.ReplaceAll(string(content), "\r\n", "\n")
	return wording.Visible(text) == text
}

// label quotes a path as Git does.
func label(path string) string {
	if strings.ContainsAny(path, "\"\\\t\n") || wording.Visible(path) != path {
		return strconv.Quote(path)
	}
	return path
}
