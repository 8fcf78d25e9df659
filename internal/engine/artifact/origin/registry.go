package origin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/errcode"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
)

const (
	maxTagPages = 100
	maxTags     = 100_000
	maxManifest = 4 << 20 // bytes
)

func (c *webClient) registry(repository string) (*remote.Repository, error) {
	reference, err := artifact.ParseRepository(folder.Manifests{Repo: repository})
	if err != nil {
		return nil, err
	}
	return &remote.Repository{
		Reference: reference, PlainHTTP: isOnThisMachine(reference.Registry), TagListMaxPages: maxTagPages, MaxMetadataBytes: maxManifest,
		Client: &auth.Client{Client: c.http, Credential: c.registryCredential(repository, reference), Cache: auth.NewCache()},
	}, nil
}

func (c *Resolver) listTags(ctx context.Context, repository string, sources []string) ([]string, error) {
	return c.tags.Get(ctx, keyOf(sources, repository), func() ([]string, error) {
		at, err := c.web.registry(repository)
		if err != nil {
			return nil, err
		}
		var all []string
		err = at.Tags(forRegistry(ctx, repository, sources), "", func(tags []string) error {
			if all = append(all, tags...); len(all) > maxTags {
				return fmt.Errorf("%w: it has more than %d tags", git.ErrTooLarge, maxTags)
			}
			return nil
		})
		return all, registryError(at.Reference.Host(), err)
	})
}

func (c *Resolver) resolveRegistry(ctx context.Context, manifests folder.Manifests, sources []string) (folder.Pin, error) {
	repository := artifact.RepositoryURL(manifests)
	version := manifests.Version
	tag := artifact.TagOf(version)
	switch {
	case manifests.Tag != "":
		tag = manifests.Tag
	case version == "" && manifests.Storage == "oci":
		tag = "latest"
	case !artifact.IsVersion(version):
		all, err := c.listTags(ctx, repository, sources)
		if err != nil {
			return folder.Pin{}, err
		}
		if tag, err = findNewest(all, version); err != nil {
			return folder.Pin{}, err
		}
		if tag == "" {
			return folder.Pin{}, fmt.Errorf("%w: %s", errNoVersion, describeMiss("tags", version, all))
		}
	}
	at, err := c.web.registry(repository)
	if err != nil {
		return folder.Pin{}, err
	}
	digest, err := digestOf(forRegistry(ctx, repository, sources), at, tag)
	if err != nil {
		return folder.Pin{}, fmt.Errorf("tag %q: %w", tag, registryError(at.Reference.Host(), err))
	}
	if !artifact.IsDigest(digest) {
		return folder.Pin{}, fmt.Errorf("tag %q has digest %.80q, and only sha256 is known", tag, digest)
	}
	if manifests.Chart != "" || manifests.Storage == "helm" {
		tag = strings.ReplaceAll(tag, "_", "+")
	}
	return folder.Pin{Version: tag, Digest: digest}, nil
}

// digestOf avoids fetching the manifest, if the registry supports that.
func digestOf(ctx context.Context, at *remote.Repository, tag string) (string, error) {
	found, err := at.Resolve(ctx, tag)
	if err == nil || errors.Is(err, errdef.ErrNotFound) || ctx.Err() != nil {
		return string(found.Digest), err
	}
	if response := (*errcode.ErrorResponse)(nil); errors.As(err, &response) && response.StatusCode != http.StatusMethodNotAllowed {
		return "", err
	}
	found, body, err := at.FetchReference(ctx, tag)
	if err != nil {
		return "", err
	}
	return string(found.Digest), body.Close()
}

// registryError returns an error of package git. It repeats no text from another host.
func registryError(host string, err error) error {
	var response *errcode.ErrorResponse
	switch {
	case err == nil:
		return nil
	case errors.Is(err, access.ErrDenied):
		return withoutURL(err)
	case errors.As(err, &response):
		if len(response.Errors) > 0 && response.URL.Host == host {
			return fmt.Errorf("%w: %w", statusError(response.StatusCode, response.URL.Path), response.Errors)
		}
		return statusError(response.StatusCode, response.URL.Path)
	case errors.Is(err, errdef.ErrNotFound):
		return fmt.Errorf("%w: %w", git.ErrNotFound, err)
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return fmt.Errorf("%w: %w", git.ErrUnauthorized, err)
	}
	return withoutURL(err)
}

const chartLayer = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"

// fetchRegistry fetches the chart layer, or the first layer as Flux does.
func (s *Store) fetchRegistry(ctx context.Context, of artifact.Artifact) ([]byte, error) {
	repository := of.URL()
	at, err := s.resolver.web.registry(repository)
	if err != nil {
		return nil, err
	}
	ctx = forRegistry(ctx, repository, of.Sources)
	found, err := at.Resolve(ctx, of.Pin.Digest)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.Pin.Digest, registryError(at.Reference.Host(), err))
	}
	if string(found.Digest) != of.Pin.Digest || found.Size > maxManifest {
		return nil, fmt.Errorf("%s: the registry answers with another manifest, or one of more than %d MiB", of.Pin.Digest, maxManifest>>20)
	}
	text, err := content.FetchAll(ctx, at, found)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", of.Pin.Digest, registryError(at.Reference.Host(), err))
	}
	var manifest ocispec.Manifest
	if err := json.Unmarshal(text, &manifest); err != nil || len(manifest.Layers) == 0 {
		return nil, fmt.Errorf(
			"%s is not an artifact with a layer: an index of several artifacts, or another document than a manifest, cannot be rendered",
			of.Pin.Digest)
	}
	isChart := func(layer ocispec.Descriptor) bool { return layer.MediaType == chartLayer }
	layer := manifest.Layers[max(0, slices.IndexFunc(manifest.Layers, isChart))]
	if layer.Size < 0 || layer.Size > maxDownload {
		return nil, fmt.Errorf("%w: its layer has %d bytes, and at most %d MiB are fetched", git.ErrTooLarge, layer.Size, maxDownload>>20)
	}
	archive, err := content.FetchAll(ctx, at.Blobs(), layer)
	if err != nil {
		return nil, fmt.Errorf("its layer: %w", registryError(at.Reference.Host(), err))
	}
	return archive, nil
}
