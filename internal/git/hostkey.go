package git

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// knownHosts knows which keys a host may show. There is no way around it.
type knownHosts struct {
	at       sshPlace
	callback ssh.HostKeyCallback
	places   string // where the keys are from, for an error
	certs    bool   // a line names a certificate authority
}

// systemKnownHosts is the machine's, where there is one.
const systemKnownHosts = "/etc/ssh/ssh_known_hosts"

func (c SSHCredentials) knownHosts(at sshPlace) (*knownHosts, error) {
	k := &knownHosts{at: at}
	var files []string
	if c.KnownHosts != "" || c.KnownHostsFile != "" {
		k.places = "the known hosts that are given"
		if c.KnownHosts != "" {
			file, err := temporaryFile(c.KnownHosts)
			if err != nil {
				return nil, fmt.Errorf("the known hosts cannot be read: %w", err)
			}
			defer os.Remove(file)
			files = append(files, file)
		}
		if c.KnownHostsFile != "" {
			k.places = fmt.Sprintf("%q", c.KnownHostsFile)
			files = append(files, c.KnownHostsFile)
		}
	} else {
		k.places = "known_hosts"
		if home, err := os.UserHomeDir(); err == nil {
			files = append(files, filepath.Join(home, ".ssh", "known_hosts"))
		}
		files = append(files, systemKnownHosts)
		files = slices.DeleteFunc(files, func(name string) bool {
			_, err := os.Stat(name)
			return errors.Is(err, os.ErrNotExist)
		})
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("the known hosts cannot be read: %w", err)
		}
		k.certs = k.certs || strings.Contains(string(content), "@cert-authority")
	}
	callback, err := knownhosts.New(files...)
	if err != nil {
		return nil, fmt.Errorf("the known hosts cannot be read: %w", err)
	}
	k.callback = callback
	return k, nil
}

// temporaryFile holds text for a library that reads files only.
func temporaryFile(text string) (string, error) {
	file, err := os.CreateTemp("", "known_hosts-")
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		_ = os.Remove(file.Name())
		return "", err
	}
	return file.Name(), nil
}

// check is asked by the handshake.
func (k *knownHosts) check(address string, remote net.Addr, shown ssh.PublicKey) error {
	err := k.callback(address, remote, shown)
	if err == nil {
		return nil
	}
	host := fmt.Sprintf("%q", knownhosts.Normalize(address))
	shows := fmt.Sprintf("%s with the fingerprint %s", shown.Type(), ssh.FingerprintSHA256(shown))
	var unknown *knownhosts.KeyError
	switch {
	case errors.As(err, new(*knownhosts.RevokedError)):
		return fmt.Errorf("%w: host %s shows the key %s, which %s has as revoked", ErrHostKey, host, shows, k.places)
	case !errors.As(err, &unknown):
		return fmt.Errorf("%w: host %s shows the key %s: %w", ErrHostKey, host, shows, err)
	case len(unknown.Want) > 0:
		var wanted []string
		for _, want := range unknown.Want {
			wanted = append(wanted, want.Key.Type()+" "+ssh.FingerprintSHA256(want.Key))
		}
		slices.Sort(wanted)
		return fmt.Errorf("%w: host %s shows the key %s, and %s has another for it (%s); "+
			"either the host has a new key, or somebody stands between you and it: ask whoever runs it before you change known_hosts",
			ErrHostKey, host, shows, k.places, strings.Join(slices.Compact(wanted), ", "))
	}
	return fmt.Errorf("%w: host %s is not in %s; it shows the key %s; compare that with what whoever runs the host says, "+
		"then add this line to known_hosts, or to the known hosts that the provider is given: %s",
		ErrHostKey, host, k.places, shows, knownhosts.Line([]string{address}, shown))
}

// algorithms puts those of the keys that are known for the host first: a server
// with several keys shows the one of the first that it has.
func (k *knownHosts) algorithms() []string {
	var first []string
	if k.certs {
		for _, algorithm := range ssh.SupportedAlgorithms().HostKeys {
			if strings.Contains(algorithm, "-cert-") {
				first = append(first, algorithm)
			}
		}
	}
	// Nobody has this key, so that the error lists those that are known.
	var known *knownhosts.KeyError
	address := net.JoinHostPort(k.at.host, k.at.port)
	if err := k.callback(address, &net.TCPAddr{}, nobodysKey{}); errors.As(err, &known) {
		for _, want := range known.Want {
			switch kind := want.Key.Type(); kind {
			case ssh.KeyAlgoRSA:
				first = append(first, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			default:
				first = append(first, kind)
			}
		}
	}
	var all []string
	for _, algorithm := range append(first, ssh.SupportedAlgorithms().HostKeys...) {
		if !slices.Contains(all, algorithm) {
			all = append(all, algorithm)
		}
	}
	return all
}

type nobodysKey struct{}

func (nobodysKey) Type() string                        { return "nobody" }
func (nobodysKey) Marshal() []byte                     { return []byte("nobody") }
func (nobodysKey) Verify([]byte, *ssh.Signature) error { return errors.New("nobody's key") }
