package origin

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/artifact/signature"
	"github.com/flotilla/terraform-provider-flotilla/internal/git"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
)

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
	err := git.CheckCredentialsURL("https://" + prefix[len("oci://"):])
	if err != nil {
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
