package origin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/signature"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

const (
	maxSignatures = 50
	maxPayload    = 1 << 20 // bytes
)

// verify checks the signature that the trusted source requires.
func (s *Store) verify(ctx context.Context, of artifact.Artifact) error {
	source, err := s.trusted(of)
	if err != nil || source == nil || source.name == "" {
		return err
	}
	_, err = s.verified.Get(ctx, of.Key()+source.name, func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		if source.git != nil {
			return struct{}{}, s.verifyGit(ctx, of, source.git)
		}
		return struct{}{}, s.verifyRegistry(ctx, of, source.cosign)
	})
	return s.resolver.describe(of.Repo, err)
}

func notSigned(format string, arguments ...any) error {
	return fmt.Errorf(format+"; one of the keys in "+inVerification+" for it has to sign it", arguments...)
}

func (s *Store) verifyGit(ctx context.Context, of artifact.Artifact, keys *git.Verifier) error {
	tip, err := s.resolver.options.Git.OpenRef(ctx, s.resolver.remote(of.Repo, of.Sources), of.Pin.Commit, 1)
	if err != nil {
		return err
	}
	defer tip.Close()
	text, has := tip.CommitText(tip.Commit)
	switch {
	case tip.Commit.String() != of.Pin.Commit || !has:
		return fmt.Errorf("the server answers with another commit than %s", of.Pin.Commit)
	case !keys.Verify(text):
		return notSigned("commit %s has no signature of a trusted key", of.Pin.Commit)
	}
	return nil
}

// verifyRegistry looks where cosign puts signatures: at a tag derived from the digest and among the referrers.
func (s *Store) verifyRegistry(ctx context.Context, of artifact.Artifact, keys *signature.Keys) error {
	at, err := s.resolver.web.registry(of.URL())
	if err != nil {
		return err
	}
	search := &signatures{at: at, keys: keys, digest: of.Pin.Digest}
	ctx = forRegistry(ctx, of.URL(), of.Sources)
	if err := search.searchTag(ctx); err != nil {
		return fmt.Errorf("the signature of %s: %w", of.Pin.Digest, registryError(at.Reference.Host(), err))
	}
	if !search.isSigned {
		if err := search.searchReferrers(ctx); err != nil {
			return fmt.Errorf("the signatures of %s: %w", of.Pin.Digest, registryError(at.Reference.Host(), err))
		}
	}
	switch {
	case search.isSigned:
		return nil
	case search.seen == 0:
		return notSigned("%s has no signature that cosign made with a key", of.Pin.Digest)
	}
	return notSigned("none of the signatures of %s is valid (%d): %w", of.Pin.Digest, search.seen, search.why)
}

type signatures struct {
	at       *remote.Repository
	keys     *signature.Keys
	digest   string
	isSigned bool
	seen     int
	why      error // defect of the last signature
}

// add counts a signature; nil means valid.
func (s *signatures) add(problem error) {
	s.seen++
	s.why = problem
	s.isSigned = s.isSigned || problem == nil
}

func (s *signatures) isDone() bool { return s.isSigned || s.seen >= maxSignatures }

func (s *signatures) searchTag(ctx context.Context) error {
	found, err := s.at.Resolve(ctx, strings.Replace(s.digest, ":", "-", 1)+".sig")
	if errors.Is(err, errdef.ErrNotFound) {
		return nil
	} else if err != nil {
		return err
	}
	return s.verifyLayers(ctx, found)
}

func (s *signatures) searchReferrers(ctx context.Context) error {
	signed := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.Digest(s.digest)}
	err := s.at.Referrers(ctx, signed, "", func(all []ocispec.Descriptor) error {
		for _, one := range all {
			isSignature := one.ArtifactType == signature.PayloadsType || strings.HasPrefix(one.ArtifactType, signature.BundleType)
			if !isSignature || s.isDone() {
				continue
			}
			if err := s.verifyLayers(ctx, one); err != nil {
				return err
			}
		}
		return nil
	})
	if errors.Is(err, errdef.ErrNotFound) {
		return nil
	}
	return err
}

// verifyLayers verifies each layer that is a signature.
func (s *signatures) verifyLayers(ctx context.Context, of ocispec.Descriptor) error {
	if of.Size > maxManifest {
		return fmt.Errorf("%w: %s has more than %d MiB", git.ErrTooLarge, of.Digest, maxManifest>>20)
	}
	text, err := content.FetchAll(ctx, s.at, of)
	if err != nil {
		return err
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil {
		return fmt.Errorf("%s is not a manifest", of.Digest)
	}
	for _, layer := range manifest.Layers {
		isPayload := layer.MediaType == signature.PayloadType
		switch {
		case s.isDone():
			return nil
		case !isPayload && !strings.HasPrefix(layer.MediaType, signature.BundleType):
			continue
		case layer.Size < 0 || layer.Size > maxPayload:
			s.add(fmt.Errorf("it has more than %d MiB", maxPayload>>20))
			continue
		}
		signed, err := content.FetchAll(ctx, s.at.Blobs(), layer)
		if err != nil {
			return err
		}
		if isPayload {
			s.add(s.keys.VerifyPayload(signed, layer.Annotations[signature.SignatureAnnotation], s.digest))
		} else {
			s.add(s.keys.VerifyBundle(signed, s.digest))
		}
	}
	return nil
}

// TrustedSource has the keys that must sign artifacts below a URL prefix.
type TrustedSource struct {
	prefix string
	name   string          // identifies the keys; "" if no signature is required
	git    *git.Verifier   // for Git repositories
	cosign *signature.Keys // for registries
}

// NewTrustedSource requires a signature by one of the keys, if any: of cosign for registries (oci://), else of Git. wrong maps
// the index of a key to its error.
func NewTrustedSource(prefix string, keys []string) (source TrustedSource, wrong map[int]error) {
	source = TrustedSource{prefix: prefix}
	if len(keys) == 0 {
		return source, nil
	}
	var add func(key string) error
	if artifact.IsRegistry(prefix) {
		source.cosign = &signature.Keys{}
		add = source.cosign.Add
	} else {
		source.git = &git.Verifier{}
		add = source.git.Add
	}
	wrong = map[int]error{}
	for i, key := range keys {
		if err := add(key); err != nil {
			wrong[i] = err
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q", slices.Sorted(slices.Values(keys))))
	source.name = hex.EncodeToString(sum[:])
	return source, wrong
}

// CheckTrustedURL checks a URL prefix. The error omits it, because it may hold a secret.
func CheckTrustedURL(prefix string) error {
	if !artifact.IsRegistry(prefix) {
		return git.CheckCredentialsURL(prefix)
	}
	if git.CheckCredentialsURL("https://"+prefix[len("oci://"):]) != nil {
		return errors.New("it is not the beginning of the URL of a registry, such as oci://registry.example.com/team")
	}
	return nil
}

const (
	inVerification = "verification.sources of the provider"
	orUnsigned     = "or with unsigned = true where its content needs no signature"
)

// trusted returns the source of an artifact, or nil if no signature is required.
func (s *Store) trusted(of artifact.Artifact) (*TrustedSource, error) {
	refused := func(format string, arguments ...any) (*TrustedSource, error) {
		text := fmt.Sprintf("repository %q: ", of.Repo) + fmt.Sprintf(format, arguments...)
		return nil, &RepositoryError{text: s.resolver.options.Credentials.Scrub(text)}
	}
	sources := s.resolver.options.Trusted
	switch {
	case len(sources) == 0 && !of.Signed:
		return nil, nil
	case len(sources) == 0:
		return refused("the parameters of the cluster type require a signature, "+
			"and the provider has no keys to check it by: list them in %s", inVerification)
	}
	source := longestSource(sources, of.URL())
	switch {
	case source == nil:
		return refused("%s have none for it: add its URL with the keys that sign it, %s", inVerification, orUnsigned)
	case source.name == "" && of.Signed:
		return refused("the parameters of the cluster type require a signature, "+
			"but %s have it as unsigned: list the keys that sign it there", inVerification)
	case source.name == "":
	case of.Storage == "helm" && !artifact.IsRegistry(of.Repo):
		return refused("charts of chart repositories have no signature that can be checked: "+
			"publish the chart in a registry (oci://) and sign it with cosign, "+
			"or list the repository in %s with unsigned = true", inVerification)
	}
	return source, nil
}

// longestSource returns the source with the longest matching prefix, or nil.
func longestSource(sources []TrustedSource, address string) *TrustedSource {
	prefixes := make([]string, len(sources))
	for i := range sources {
		prefixes[i] = sources[i].prefix
	}
	grant, err := access.Decide(access.Request{URL: address}, prefixes)
	if err != nil || grant.Login < 0 {
		return nil
	}
	return &sources[grant.Login]
}

// CheckTrusted reports a prefix of two sources.
func CheckTrusted(sources []TrustedSource) error {
	seen := map[string]bool{}
	for _, source := range sources {
		prefix := strings.TrimRight(source.prefix, "/")
		if seen[prefix] {
			return fmt.Errorf("there are two for %q", prefix)
		}
		seen[prefix] = true
	}
	return nil
}
