package origin

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/wording"
)

// chartIndex is the index.yaml of a chart repository.
type chartIndex struct {
	Entries map[string][]chartVersion `yaml:"entries"`
}

type chartVersion struct {
	Version string   `yaml:"version"`
	Digest  string   `yaml:"digest"`
	URLs    []string `yaml:"urls"`
}

func (i *chartIndex) versions(chart string) []string {
	var versions []string
	for _, entry := range i.Entries[chart] {
		versions = append(versions, entry.Version)
	}
	return versions
}

// find is the newest version of a chart in a range, or that which is written so.
func (i *chartIndex) find(chart, version string) (*chartVersion, error) {
	entries, ok := i.Entries[chart]
	if !ok {
		return nil, fmt.Errorf("%w: there is no chart %q%s", git.ErrNotFound, chart, wording.DidYouMean(chart, slices.Sorted(maps.Keys(i.Entries))))
	}
	named := func(version string) int {
		return slices.IndexFunc(entries, func(entry chartVersion) bool { return entry.Version == version && version != "" })
	}
	at := named(version)
	if at < 0 {
		newest, err := greatest(i.versions(chart), version)
		if err != nil {
			return nil, fmt.Errorf("chart %q: %w", chart, err)
		}
		if at = named(newest); at < 0 {
			return nil, fmt.Errorf("%w: none of the %d versions of chart %q is %q, or in that range", git.ErrNotFound, len(entries), chart, orAny(version))
		}
	}
	return &entries[at], nil
}

const maxIndex = 32 << 20 // bytes; the largest that are known have 20 MiB

func (c *Client) index(ctx context.Context, repo string) (*chartIndex, error) {
	return c.indexes.Get(ctx, repo, func() (*chartIndex, error) {
		text, err := c.download(ctx, strings.TrimSuffix(repo, "/")+"/index.yaml")
		if err != nil {
			return nil, err
		}
		if len(text) > maxIndex {
			return nil, fmt.Errorf("%w: its index.yaml has more than %d MiB", git.ErrTooLarge, maxIndex>>20)
		}
		return parseIndex(text)
	})
}

func parseIndex(text []byte) (*chartIndex, error) {
	var index chartIndex
	if err := yaml.Unmarshal(text, &index); err != nil {
		return nil, fmt.Errorf("its index.yaml cannot be read: %s", wording.Cut(wording.OneLine(err.Error()), 200))
	}
	return &index, nil
}

func (c *Client) resolveChart(ctx context.Context, manifests folder.Manifests) (folder.Pin, error) {
	index, err := c.index(ctx, manifests.Repo)
	if err != nil {
		return folder.Pin{}, err
	}
	found, err := index.find(manifests.Chart, manifests.Version)
	if err != nil {
		return folder.Pin{}, err
	}
	if err := folder.CheckText(found.Version); err != nil {
		return folder.Pin{}, fmt.Errorf("its index.yaml: a version of chart %q: %w", manifests.Chart, err)
	}
	pin := folder.Pin{Version: found.Version, Digest: "sha256:" + strings.TrimPrefix(strings.ToLower(found.Digest), "sha256:")}
	if !artifact.IsDigest(pin.Digest) { // the index need not have it
		archive, err := c.fetchVersion(ctx, manifests.Repo, manifests.Chart, found)
		if err != nil {
			return folder.Pin{}, err
		}
		pin.Digest = digestOfBytes(archive)
	}
	return pin, nil
}

// fetchChart gets the archive of a chart of a chart repository.
func (c *Client) fetchChart(ctx context.Context, of artifact.Artifact) ([]byte, error) {
	index, err := c.index(ctx, of.Repo)
	if err != nil {
		return nil, err
	}
	found, err := index.find(of.Chart, of.Pin.Version)
	if err != nil {
		return nil, err
	}
	archive, err := c.fetchVersion(ctx, of.Repo, of.Chart, found)
	if err != nil {
		return nil, err
	}
	if digest := digestOfBytes(archive); digest != of.Pin.Digest {
		return nil, fmt.Errorf("chart %q %s has digest %s, and the pin has %s: the version was published again with other content, or it was changed on its way; "+
			"let the pin be updated, if that is as it should be", of.Chart, of.Pin.Version, digest, of.Pin.Digest)
	}
	return archive, nil
}

func (c *Client) fetchVersion(ctx context.Context, repo, chart string, version *chartVersion) ([]byte, error) {
	if len(version.URLs) == 0 {
		return nil, fmt.Errorf("its index.yaml has no URL for chart %q %s", chart, version.Version)
	}
	base, err := url.Parse(strings.TrimSuffix(repo, "/") + "/")
	if err != nil {
		return nil, errors.New("its URL cannot be parsed")
	}
	at, err := base.Parse(version.URLs[0])
	if err != nil || at.User != nil {
		return nil, fmt.Errorf("its index.yaml has a URL for chart %q %s that cannot be read", chart, version.Version)
	}
	if at.Scheme != "https" && at.Scheme != base.Scheme {
		return nil, fmt.Errorf("its index.yaml has a URL for chart %q %s with scheme %q; from a repository of %s only that and https are fetched", chart, version.Version, at.Scheme, base.Scheme)
	}
	archive, err := c.download(ctx, at.String())
	if err != nil {
		return nil, fmt.Errorf("chart %q %s: %w", chart, version.Version, err)
	}
	return archive, nil
}

func digestOfBytes(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}
