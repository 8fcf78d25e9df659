package gittest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/go-git/go-billy/v5/osfs"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/cache"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"github.com/flotilla/terraform-provider-flotilla/internal/git"
)

// Local serves a repository on disk to a client that is given it as git.Options.Local, without the processes that
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
	return local(directory)
}

// special matches configuration that Local knows nothing of.
var special = regexp.MustCompile(`(?im)^\[(receive|transfer|extensions|core .)|hideRefs|bare *= *false`)

// pushing has one push at a time go on, so that each compares and swaps.
var pushing sync.Mutex

type local string

// NewUploadPackSession makes it a transport.Transport.
func (l local) NewUploadPackSession(*transport.Endpoint, transport.AuthMethod) (transport.UploadPackSession, error) {
	return l.session(), nil
}

// NewReceivePackSession makes it a transport.Transport.
func (l local) NewReceivePackSession(*transport.Endpoint, transport.AuthMethod) (transport.ReceivePackSession, error) {
	return l.session(), nil
}

func (l local) session() *localSession {
	return &localSession{storage: filesystem.NewStorage(osfs.New(string(l)), cache.NewObjectLRUDefault())}
}

type localSession struct {
	storage           *filesystem.Storage
	transport.Session // of which nothing else is called
}

// Close makes it a transport.Session.
func (s *localSession) Close() error { return s.storage.Close() }

func (s *localSession) AdvertisedReferencesContext(ctx context.Context) (*packp.AdvRefs, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	advertised := packp.NewAdvRefs()
	for _, c := range []capability.Capability{
		capability.ReportStatus, capability.Shallow, capability.Filter, capability.AllowReachableSHA1InWant, capability.AllowTipSHA1InWant,
	} {
		if err := advertised.Capabilities.Set(c); err != nil {
			return nil, err
		}
	}
	references, err := s.storage.IterReferences()
	if err != nil {
		return nil, err
	}
	err = references.ForEach(func(r *plumbing.Reference) error {
		resolved, err := storer.ResolveReference(s.storage, r.Name())
		if err != nil {
			return nil //nolint:nilerr // HEAD of a branch that does not exist
		}
		if r.Name() == plumbing.HEAD {
			id := resolved.Hash()
			advertised.Head = &id
			return advertised.AddReference(r)
		}
		if o := s.object(resolved.Hash()); o.Kind == plumbing.TagObject { // "object <id>" is its first line
			advertised.Peeled[r.Name().String()] = plumbing.NewHash(string(o.Content[len("object "):][:40]))
		}
		return advertised.AddReference(plumbing.NewHashReference(r.Name(), resolved.Hash()))
	})
	if err == nil && advertised.Head == nil && len(advertised.References) == 0 {
		err = transport.ErrEmptyRemoteRepository
	}
	return advertised, err
}

func (s *localSession) UploadPack(_ context.Context, request *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	for _, id := range request.Wants {
		if s.storage.HasEncodedObject(id) != nil {
			return nil, &pktline.ErrorLine{Text: "upload-pack: not our ref " + id.String()}
		}
	}
	return answer(s.object, request)
}

// object is one of the repository; none where it cannot be read.
func (s *localSession) object(id git.Hash) git.Object {
	encoded, err := s.storage.EncodedObject(plumbing.AnyObject, id)
	if err != nil {
		return git.Object{}
	}
	r, err := encoded.Reader()
	if err != nil {
		return git.Object{}
	}
	defer r.Close()
	var content bytes.Buffer
	if _, err := content.ReadFrom(r); err != nil {
		return git.Object{}
	}
	return git.Object{Kind: encoded.Type(), Content: append([]byte{}, content.Bytes()...)}
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
	var now git.Hash
	if at, err := s.storage.Reference(command.Name); err == nil {
		now = at.Hash()
	}
	if command.Old != now {
		status.Status = "fetch first"
	} else if err := s.storage.SetReference(plumbing.NewHashReference(command.Name, command.New)); err != nil {
		status.Status = err.Error()
	}
	return report, report.Error()
}
