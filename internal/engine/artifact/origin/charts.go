package origin

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/folder"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// findVersion returns the given version, or else the newest in the range.
func findVersion(chart, version string, entries []chartVersion) (*chartVersion, error) {
	named := func(version string) int {
		return slices.IndexFunc(entries, func(entry chartVersion) bool { return entry.Version == version && version != "" })
	}
	at := named(version)
	if at < 0 {
		newest, err := findNewest(versionTexts(entries), version)
		if err != nil {
			return nil, fmt.Errorf("chart %q: %w", chart, err)
		}
		if at = named(newest); at < 0 {
			return nil, fmt.Errorf("%w: %s", errNoVersion, describeMiss(fmt.Sprintf("versions of chart %q", chart), version, versionTexts(entries)))
		}
	}
	return &entries[at], nil
}

func versionTexts(entries []chartVersion) []string {
	versions := make([]string, len(entries))
	for i := range entries {
		versions[i] = entries[i].Version
	}
	return versions
}

var errNoChart = errors.New("it has no chart")

// versions returns the versions of a chart.
func (c *Resolver) versions(ctx context.Context, repo, chart string, sources []string) ([]chartVersion, error) {
	return c.charts.Get(ctx, keyOf(sources, repo, chart), func() ([]chartVersion, error) {
		index, err := c.indexes.Get(ctx, keyOf(sources, repo), func() (*chartIndex, error) { return c.fetchIndex(ctx, repo, sources) })
		if err != nil {
			return nil, err
		}
		release, err := c.parsing.Take(ctx, "") // keeps the tree of only one version in memory
		if err != nil {
			return nil, err
		}
		defer release()
		versions, has, err := index.versions(ctx, chart)
		switch {
		case index.isElsewhere && (err != nil || !has):
			return nil, fmt.Errorf("%w %q that can be read in its index.yaml, for which it redirects to another server", errNoChart, chart)
		case !has:
			names := slices.Sorted(slices.Values(index.names()))
			return nil, fmt.Errorf("%w %q%s", errNoChart, chart, wording.DidYouMean(chart, names))
		}
		return versions, err
	})
}

func indexURL(repo string) string { return strings.TrimSuffix(repo, "/") + "/index.yaml" }

func (c *Resolver) fetchIndex(ctx context.Context, repo string, sources []string) (*chartIndex, error) {
	tooLong := fmt.Errorf("%w: its index.yaml has more than %d MiB", git.ErrTooLarge, maxIndex>>20)
	response, err := c.web.open(ctx, indexURL(repo), "gzip", &sourceLimits{sources: sources})
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	var plain io.Reader = response.Body
	if strings.EqualFold(response.Header.Get("Content-Encoding"), "gzip") {
		if plain, err = gzip.NewReader(plain); err != nil {
			return nil, fmt.Errorf("its index.yaml cannot be read: %w", err)
		}
	}
	index, err := readIndex(&bounded.Reader{From: plain, Left: maxIndex, TooLong: tooLong})
	asked := response.Request.URL
	if hops := access.Hops(response.Request); len(hops) > 0 {
		asked = hops[0]
	}
	isElsewhere := access.OriginOf(response.Request.URL) != access.OriginOf(asked)
	switch {
	case err != nil && isElsewhere && !errors.Is(err, git.ErrTooLarge):
		return nil, errors.New("its index.yaml, for which it redirects to another server, cannot be read")
	case err != nil:
		return nil, err
	}
	index.isElsewhere = isElsewhere
	return index, nil
}

func (c *Resolver) resolveChart(ctx context.Context, manifests folder.Manifests, sources []string) (folder.Pin, error) {
	versions, err := c.versions(ctx, manifests.Repo, manifests.Chart, sources)
	if err != nil {
		return folder.Pin{}, err
	}
	found, err := findVersion(manifests.Chart, manifests.Version, versions)
	if err != nil {
		return folder.Pin{}, err
	}
	if err := folder.CheckText(found.Version); err != nil {
		return folder.Pin{}, fmt.Errorf("its index.yaml: a version of chart %q: %w", manifests.Chart, err)
	}
	pin := folder.Pin{Version: found.Version, Digest: "sha256:" + strings.TrimPrefix(strings.ToLower(found.Digest), "sha256:")}
	if !artifact.IsDigest(pin.Digest) { // optional in the index
		archive, err := c.fetchVersion(ctx, manifests.Repo, manifests.Chart, found, sources)
		if err != nil {
			return folder.Pin{}, err
		}
		pin.Digest = digest.FromBytes(archive).String()
	}
	return pin, nil
}

func (s *Store) fetchChart(ctx context.Context, of artifact.Artifact) ([]byte, error) {
	versions, err := s.resolver.versions(ctx, of.Repo, of.Chart, of.Sources)
	if err != nil {
		return nil, err
	}
	version, err := findVersion(of.Chart, of.Pin.Version, versions)
	if err != nil {
		return nil, err
	}
	archive, err := s.resolver.fetchVersion(ctx, of.Repo, of.Chart, version, of.Sources)
	if err != nil {
		return nil, err
	}
	if found := digest.FromBytes(archive).String(); found != of.Pin.Digest {
		return nil, fmt.Errorf(
			"chart %q %s has digest %s, and the pin has %s: the version was published again with other content, or it was changed on its way; "+
				"let the pin be updated, if that is as it should be", of.Chart, of.Pin.Version, found, of.Pin.Digest)
	}
	return archive, nil
}

func (c *Resolver) fetchVersion(ctx context.Context, repo, chart string, version *chartVersion, sources []string) ([]byte, error) {
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
	archive, err := c.web.download(ctx, at.String(), &sourceLimits{sources: sources, from: []string{indexURL(repo)}})
	if err != nil {
		return nil, fmt.Errorf("chart %q %s: %w", chart, version.Version, err)
	}
	return archive, nil
}
