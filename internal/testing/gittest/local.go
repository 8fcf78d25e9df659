package gittest

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

// GitServes says that git serves what [Options] and [Backend] would serve without its processes: so it is in `make acceptance`.
var GitServes = acceptancetest.All() && !acceptancetest.Either()

// Options are options of a client for local repositories, through [Local].
func Options() git.ConnectorOptions {
	if GitServes {
		return git.ConnectorOptions{}
	}
	return git.ConnectorOptions{Local: Local}
}

// Local serves a repository on disk to a client that is given it as git.ConnectorOptions.Local, without the processes that
// git starts for each request, which take most of the time of tests with many small requests. git reads and writes the same
// repository. Local is nil for a repository that is more than a bare one without hooks, which git has to serve.
func Local(directory string) transport.Transport {
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
	config, err := os.ReadFile(filepath.Join(directory, "config"))
	if err != nil || special.Match(config) {
		return nil
	}
	return local{directory: directory, filters: true, ids: true}
}

// special matches configuration that nothing here knows of.
var special = regexp.MustCompile(
	`(?im)^\[(transfer|extensions|uploadpackfilter)|hideRefs|bare *= *false|deny|fsck|certNonce|maxInputSize|allow(Tip|Reachable)`,
)

// pushing has one push at a time go on, so that each compares and swaps.
var pushing sync.Mutex

type local struct {
	directory    string
	filters, ids bool // the server can filter, and gives objects by their ids
}

// NewUploadPackSession makes it a transport.Transport.
func (l local) NewUploadPackSession(*transport.Endpoint, transport.AuthMethod) (transport.UploadPackSession, error) {
	return l.session(), nil
}

// NewReceivePackSession makes it a transport.Transport.
func (l local) NewReceivePackSession(*transport.Endpoint, transport.AuthMethod) (transport.ReceivePackSession, error) {
	return l.session(), nil
}

func (l local) session() *localSession {
	return &localSession{local: l, storage: filesystem.NewStorage(osfs.New(l.directory), cache.NewObjectLRUDefault())}
}

type localSession struct {
	local
	storage           *filesystem.Storage
	transport.Session // only this method is called
}

// Close makes it a transport.Session.
func (s *localSession) Close() error { return s.storage.Close() }

func (s *localSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	advertised := packp.NewAdvRefs()
	capabilities := []capability.Capability{capability.ReportStatus, capability.Shallow}
	if s.filters {
		capabilities = append(capabilities, capability.Filter)
	}
	if s.ids {
		capabilities = append(capabilities, capability.AllowReachableSHA1InWant, capability.AllowTipSHA1InWant)
	}
	for _, c := range capabilities {
		if err := advertised.Capabilities.Set(c); err != nil {
			return nil, err
		}
	}
	references, err := s.references()
	if err != nil {
		return nil, err
	}
	if len(references) == 0 {
		return advertised, transport.ErrEmptyRemoteRepository
	}
	for name, id := range references {
		advertised.References[name] = id
		if o := s.object(id); o.Kind == plumbing.TagObject { // "object <id>" is its first line
			advertised.Peeled[name] = plumbing.NewHash(string(o.Content[len("object "):][:40]))
		}
	}
	head, err := s.storage.Reference(plumbing.HEAD)
	if err != nil {
		return nil, err
	}
	if id, ok := references[head.Target().String()]; ok {
		advertised.Head = &id
		err = advertised.AddReference(head)
	}
	return advertised, err
}

// references are those below refs. go-git's way to list them fails while somebody has one locked.
func (s *localSession) references() (map[string]git.Hash, error) {
	references := map[string]git.Hash{}
	packed, err := os.ReadFile(filepath.Join(s.directory, "packed-refs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(packed)) {
		if id, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok && plumbing.IsHash(id) {
			references[name] = plumbing.NewHash(id)
		}
	}
	return references, filepath.WalkDir(filepath.Join(s.directory, "refs"), func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(file, ".lock") {
			return err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(s.directory, file)
		if err == nil {
			references[filepath.ToSlash(name)] = plumbing.NewHash(strings.TrimSpace(string(content)))
		}
		return err
	})
}

func (s *localSession) UploadPack(ctx context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	s.storage = s.session().storage // including pushes since the references were read
	advertised, err := s.AdvertisedReferencesContext(ctx)
	if err != nil {
		return nil, err
	}
	tips := slices.Concat(slices.Collect(maps.Values(advertised.References)), slices.Collect(maps.Values(advertised.Peeled)))
	for _, id := range request.Wants {
		if s.storage.HasEncodedObject(id) != nil || !s.ids && !slices.Contains(tips, id) {
			return nil, &pktline.ErrorLine{Text: "upload-pack: not our ref " + id.String()}
		}
	}
	return answer(s.object, request)
}

// object returns an object of the repository; an empty one if it cannot be read.
func (s *localSession) object(id git.Hash) git.RawObject {
	encoded, err := s.storage.EncodedObject(plumbing.AnyObject, id)
	if err != nil {
		return git.RawObject{}
	}
	r, err := encoded.Reader()
	if err != nil {
		return git.RawObject{}
	}
	defer r.Close()
	var content bytes.Buffer
	if _, err := content.ReadFrom(r); err != nil {
		return git.RawObject{}
	}
	return git.RawObject{Kind: encoded.Type(), Content: append([]byte{}, content.Bytes()...)}
}

func (s *localSession) ReceivePack(ctx context.Context, request *packp.ReferenceUpdateRequest) (*packp.ReportStatus, error) {
	if err := packfile.UpdateObjectStorage(s.storage, request.Packfile); err != nil {
		return nil, err
	}
	pushing.Lock()
	defer pushing.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	command := request.Commands[0]
	report := packp.NewReportStatus()
	report.UnpackStatus = "ok"
	status := &packp.CommandStatus{ReferenceName: command.Name, Status: "ok"}
	report.CommandStatuses = []*packp.CommandStatus{status}
	if err := s.update(command); err != nil {
		status.Status = err.Error()
	}
	return report, report.Error()
}

// update brings a reference from where it was to another commit, under the lock that git takes for that.
func (s *localSession) update(command *packp.Command) error {
	file := filepath.Join(s.directory, filepath.FromSlash(command.Name.String()))
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
	if at, err := s.session().storage.Reference(command.Name); err == nil {
		now = at.Hash()
	}
	if command.Old != now {
		return errors.New("fetch first")
	}
	return os.Rename(file+".lock", file)
}
