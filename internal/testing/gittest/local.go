package gittest

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// GitServes makes git serve in place of [Options] and [Backend], as in `make acceptance`.
var GitServes = acceptancetest.All() && !acceptancetest.Either()

// Options reaches local repositories through [Local].
func Options() git.ConnectorOptions {
	if GitServes {
		return git.ConnectorOptions{}
	}
	return git.ConnectorOptions{Local: Local, Init: Init}
}

// Local is a git.ConnectorOptions.Local that serves a repository on disk without processes, the slowest part of small tests. git
// may use it, too. Local returns nil for clones and for repositories with hooks or unusual configuration.
func Local(directory string) http.RoundTripper {
	for name, folder := range map[string]bool{"objects": true, "refs": true, "HEAD": false} {
		if info, err := os.Stat(filepath.Join(directory, name)); err != nil || info.IsDir() != folder {
			return nil
		}
	}
	hooks, _ := os.ReadDir(filepath.Join(directory, "hooks"))
	for _, hook := range hooks {
		if !strings.HasSuffix(hook.Name(), ".sample") {
			return nil
		}
	}
	if _, err := os.Stat(filepath.Join(directory, "objects", "info", "alternates")); err == nil {
		return nil
	}
	config, err := os.ReadFile(filepath.Join(directory, "config"))
	if err != nil || special.Match(config) {
		return nil
	}
	return local{directory: directory, filters: true, ids: true}
}

// special matches configuration that only git implements.
var special = regexp.MustCompile(
	`(?im)^\[(transfer|extensions|uploadpackfilter)|hideRefs|bare *= *false|deny|fsck|certNonce|maxInputSize|allow(Tip|Reachable)`,
)

// pushing makes comparing and changing a reference atomic.
var pushing sync.Mutex

type local struct {
	directory    string
	filters, ids bool // capabilities
	packs        []map[git.Hash]git.RawObject
}

// RoundTrip serves a request.
func (l local) RoundTrip(r *http.Request) (*http.Response, error) { return l.session().RoundTrip(r) }

func (l local) session() *session {
	return &session{store: &l, shallow: true, filters: l.filters, ids: l.ids, tipsOnly: !l.ids}
}

func (l *local) storage() *filesystem.Storage {
	return filesystem.NewStorage(osfs.New(l.directory), cache.NewObjectLRUDefault())
}

func (l *local) references(advertised *packp.AdvRefs) error {
	var err error
	if advertised.References, err = l.readReferences(); err != nil {
		return err
	}
	for name, id := range advertised.References {
		if !strings.HasPrefix(name, "refs/tags/") {
			continue
		}
		if o := l.object(id); o.Kind == plumbing.TagObject { // "object <id>" is its first line
			advertised.Peeled[name] = plumbing.NewHash(string(o.Content[len("object "):][:40]))
		}
	}
	content, err := os.ReadFile(filepath.Join(l.directory, "HEAD"))
	if err != nil {
		return err
	}
	branch, isSymbolic := strings.CutPrefix(strings.TrimSpace(string(content)), "ref: ")
	if id, ok := advertised.References[branch]; ok && isSymbolic {
		advertised.Head = &id
		err = advertised.AddReference(plumbing.NewSymbolicReference(plumbing.HEAD, plumbing.ReferenceName(branch)))
	}
	return err
}

// readReferences succeeds while a reference is locked, unlike go-git.
func (l *local) readReferences() (map[string]git.Hash, error) {
	references := map[string]git.Hash{}
	packed, err := os.ReadFile(filepath.Join(l.directory, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(packed)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && plumbing.IsHash(id) {
			references[name] = plumbing.NewHash(id)
		}
	}
	return references, filepath.WalkDir(filepath.Join(l.directory, "refs"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(file, ".lock") {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(l.directory, file)
		if err == nil {
			references[filepath.ToSlash(name)] = plumbing.NewHash(strings.TrimSpace(string(content)))
		}
		return err
	})
}

func (l *local) object(id git.Hash) git.RawObject {
	if o, ok := l.packed(id); ok {
		return o
	}
	file := filepath.Join(l.directory, "objects", id.String()[:2], id.String()[2:])
	if o, err := contents.readLoose(id, file); err == nil {
		return o
	}
	l.packs = contents.readPacks(filepath.Join(l.directory, "objects", "pack"))
	o, _ := l.packed(id)
	return o
}

func (l *local) packed(id git.Hash) (git.RawObject, bool) {
	for _, pack := range l.packs {
		if o, ok := pack[id]; ok {
			return o, true
		}
	}
	return git.RawObject{}, false
}

func (l *local) receive(pack io.Reader, command *packp.Command) error {
	if err := packfile.UpdateObjectStorage(l.storage(), pack); err != nil {
		return err
	}
	pushing.Lock()
	defer pushing.Unlock()
	return l.update(command)
}

// update moves a reference under git's lock.
func (l *local) update(command *packp.Command) error {
	file := filepath.Join(l.directory, filepath.FromSlash(command.Name.String()))
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	lock, err := os.OpenFile(file+".lock", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if err != nil {
		return errors.New("failed to update ref")
	}
	defer os.Remove(file + ".lock") // gone where it was renamed
	_, err = lock.WriteString(command.New.String() + "\n")
	if err := errors.Join(err, lock.Close()); err != nil {
		return err
	}
	var now git.Hash
	if references, err := l.readReferences(); err == nil {
		now = references[command.Name.String()]
	}
	if command.Old != now {
		return errors.New("fetch first")
	}
	return os.Rename(file+".lock", file)
}
