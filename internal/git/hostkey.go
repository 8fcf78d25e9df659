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

// knownHosts has the accepted host keys. The check cannot be turned off.
type knownHosts struct {
	at       sshAddress
	callback ssh.HostKeyCallback
	source   string // for errors
	certs    bool   // a line names a certificate authority
}

const systemKnownHosts = "/etc/ssh/ssh_known_hosts"

func (c SSHCredentials) knownHosts(at sshAddress) (*knownHosts, error) {
	k := &knownHosts{at: at}
	var files []string
	if c.KnownHosts != "" || c.KnownHostsFile != "" {
		k.source = "the configured known hosts"
		if c.KnownHosts != "" {
			file, err := writeTemporaryFile(c.KnownHosts)
			if err != nil {
				return nil, fmt.Errorf("the known hosts cannot be read: %w", err)
			}
			defer os.Remove(file)
			files = append(files, file)
		}
		if c.KnownHostsFile != "" {
			k.source = fmt.Sprintf("%q", c.KnownHostsFile)
			files = append(files, c.KnownHostsFile)
		}
	} else {
		k.source = "known_hosts"
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

// writeTemporaryFile writes text for a library that reads only files.
func writeTemporaryFile(text string) (string, error) {
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

func (k *knownHosts) check(address string, remote net.Addr, shown ssh.PublicKey) error {
	err := k.callback(address, remote, shown)
	if err == nil {
		return nil
	}
	server := fmt.Sprintf("%q", knownhosts.Normalize(address))
	key := fmt.Sprintf("%s with the fingerprint %s", shown.Type(), ssh.FingerprintSHA256(shown))
	var unknown *knownhosts.KeyError
	switch {
	case errors.As(err, new(*knownhosts.RevokedError)):
		return fmt.Errorf("%w: the ssh server %s presents the key %s, which is marked as revoked in %s", ErrHostKey, server, key, k.source)
	case !errors.As(err, &unknown):
		return fmt.Errorf("%w: the ssh server %s presents the key %s: %w", ErrHostKey, server, key, err)
	case len(unknown.Want) > 0:
		var wanted []string
		for _, want := range unknown.Want {
			wanted = append(wanted, want.Key.Type()+" "+ssh.FingerprintSHA256(want.Key))
		}
		slices.Sort(wanted)
		return fmt.Errorf("%w: the ssh server %s presents the key %s, but %s has another key for it (%s); "+
			"either the server has a new key, or the connection is intercepted: ask the administrator of the server before you change known_hosts",
			ErrHostKey, server, key, k.source, strings.Join(slices.Compact(wanted), ", "))
	}
	return fmt.Errorf(
		"%w: the ssh server %s is not in %s; it presents the key %s; compare it with the key that the administrator of the server publishes, "+
			"then add this line to known_hosts, or to the known hosts in the provider's configuration: %s",
		ErrHostKey,
		server,
		k.source,
		key,
		knownhosts.Line([]string{address}, shown),
	)
}

// algorithms lists known ones first, because a server presents its first key in this order.
func (k *knownHosts) algorithms() []string {
	var first []string
	if k.certs {
		for _, algorithm := range ssh.SupportedAlgorithms().HostKeys {
			if strings.Contains(algorithm, "-cert-") {
				first = append(first, algorithm)
			}
		}
	}
	// This key matches none, so the error lists the known ones.
	err := k.callback(net.JoinHostPort(k.at.host, k.at.port), &net.TCPAddr{}, noKey{})
	if known, ok := errors.AsType[*knownhosts.KeyError](err); ok {
		for _, want := range known.Want {
			switch kind := want.Key.Type(); kind {
			case ssh.KeyAlgoRSA:
				first = append(first, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256)
			default:
				first = append(first, kind)
			}
		}
	}
	// The error for an unknown server shows the key that its administrator most likely publishes.
	first = append(first, ssh.KeyAlgoED25519)
	var all []string
	for _, algorithm := range append(first, ssh.SupportedAlgorithms().HostKeys...) {
		if !slices.Contains(all, algorithm) {
			all = append(all, algorithm)
		}
	}
	return all
}

type noKey struct{}

func (noKey) Type() string                        { return "none" }
func (noKey) Marshal() []byte                     { return []byte("none") }
func (noKey) Verify([]byte, *ssh.Signature) error { return errors.New("not a key") }
