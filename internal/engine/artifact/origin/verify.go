package origin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/signature"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wait"
)

const (
	maxSignatures = 50
	maxPayload    = 1 << 20 // bytes
)

// verifier checks the signatures that trusted sources require.
type verifier struct {
	resolver *Resolver
	verified wait.Answers[struct{}]
}

func (v *verifier) verify(ctx context.Context, of artifact.Artifact) error {
	source, err := v.trusted(of)
	if err != nil || source == nil || source.name == "" {
		return err
	}
	_, err = v.verified.Get(ctx, of.Key()+source.name, func() (struct{}, error) {
		ctx, cancel := context.WithTimeout(ctx, askTime)
		defer cancel()
		if source.git != nil {
			return struct{}{}, v.verifyGit(ctx, of, source.git)
		}
		return struct{}{}, v.verifyRegistry(ctx, of, source.cosign)
	})
	return v.resolver.describe(of.Repo, err)
}

func notSigned(format string, arguments ...any) error {
	return fmt.Errorf(format+"; one of the keys in "+inVerification+" for it has to sign it", arguments...)
}

func (v *verifier) verifyGit(ctx context.Context, of artifact.Artifact, keys *git.Verifier) error {
	tip, err := v.resolver.options.Git.OpenRef(ctx, v.resolver.remote(of.Repo, of.Sources), of.Pin.Commit, 1)
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
func (v *verifier) verifyRegistry(ctx context.Context, of artifact.Artifact, keys *signature.Keys) error {
	at, err := v.resolver.web.registry(of.URL())
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
	return s.verifyPayloads(ctx, found)
}

func (s *signatures) searchReferrers(ctx context.Context) error {
	signed := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.Digest(s.digest)}
	err := s.at.Referrers(ctx, signed, "", func(all []ocispec.Descriptor) error {
		for _, one := range all {
			var err error
			switch {
			case s.isDone():
				return nil
			case one.ArtifactType == signature.PayloadsType:
				err = s.verifyPayloads(ctx, one)
			case strings.HasPrefix(one.ArtifactType, signature.BundleType):
				err = s.verifyBundles(ctx, one)
			}
			if err != nil {
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

func (s *signatures) verifyPayloads(ctx context.Context, of ocispec.Descriptor) error {
	return s.verifyLayers(ctx, of, func(layer ocispec.Descriptor, content []byte) error {
		return s.keys.VerifyPayload(content, layer.Annotations[signature.SignatureAnnotation], s.digest)
	}, func(mediaType string) bool { return mediaType == signature.PayloadType })
}

func (s *signatures) verifyBundles(ctx context.Context, of ocispec.Descriptor) error {
	return s.verifyLayers(ctx, of, func(_ ocispec.Descriptor, content []byte) error {
		return s.keys.VerifyBundle(content, s.digest)
	}, func(mediaType string) bool { return strings.HasPrefix(mediaType, signature.BundleType) })
}

func (s *signatures) verifyLayers(
	ctx context.Context, of ocispec.Descriptor, verify func(layer ocispec.Descriptor, content []byte) error, isOne func(mediaType string) bool,
) error {
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
		switch {
		case s.isDone():
			return nil
		case !isOne(layer.MediaType):
			continue
		case layer.Size < 0 || layer.Size > maxPayload:
			s.add(fmt.Errorf("it has more than %d MiB", maxPayload>>20))
			continue
		}
		signed, err := content.FetchAll(ctx, s.at.Blobs(), layer)
		if err != nil {
			return err
		}
		s.add(verify(layer, signed))
	}
	return nil
}
