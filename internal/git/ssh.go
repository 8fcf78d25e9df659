package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/access"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/armor"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/bounded"
	"github.com/flotilla/terraform-provider-flotilla/internal/shared/wording"
)

// SSHCredentials authenticate with ssh. Without them, the keys of the agent at SSH_AUTH_SOCK and the known_hosts of the user
// and the machine apply. The user is the URL's, else "git". ~/.ssh/config is not read.
type SSHCredentials struct {
	// Key is PEM. Default: the agent's keys.
	Key        string
	Passphrase string
	// KnownHosts has the format of known_hosts. With it, or KnownHostsFile, no other file is read.
	KnownHosts     string
	KnownHostsFile string
}

// Format hides the secrets from every verb.
func (SSHCredentials) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "(ssh credentials)") }

// sshAddress is a parsed ssh URL.
type sshAddress struct {
	user, host, port string
	path             string // as in the command
}

// parseSSH parses ssh://[user@]host[:port]/path and [user@]host:path.
func parseSSH(raw string) (at sshAddress, ok bool) {
	if scheme := schemePattern.FindStringSubmatch(raw); scheme != nil {
		parsed, err := url.Parse(raw)
		if err != nil || !strings.EqualFold(scheme[1], "ssh") {
			return sshAddress{}, false
		}
		at = sshAddress{user: parsed.User.Username(), host: parsed.Hostname(), port: parsed.Port(), path: parsed.Path}
		if strings.HasPrefix(at.path, "/~") {
			at.path = at.path[1:] // a home directory: ~user
		}
	} else {
		user, host, path, ok := access.SplitSCP(raw)
		if !ok {
			return sshAddress{}, false
		}
		at = sshAddress{user: user, host: host, path: path}
	}
	at.user, at.port = cmp.Or(at.user, access.DefaultSSHUser), cmp.Or(at.port, "22")
	return at, true
}

// sshServer runs git's services through one connection.
type sshServer struct {
	at          sshAddress
	credentials SSHCredentials

	client *ssh.Client // nil until needed
}

// sshGrace is the time for a service to end after its work.
const sshGrace = 5 * time.Second

func (s *sshServer) start(ctx context.Context, name string) (*service, error) {
	session, err := s.session(ctx)
	if err != nil {
		return nil, err
	}
	client := s.client
	started := &service{stderr: &beginning{limit: maxErrorBody}}
	// Only closing the connection ends every wait.
	started.kill = sync.OnceFunc(func() { _ = client.Close() })
	stop := context.AfterFunc(ctx, started.kill)
	session.Stderr = started.stderr
	if started.stdin, err = session.StdinPipe(); err == nil {
		started.stdout, err = session.StdoutPipe()
	}
	if err == nil {
		err = session.Start(name + " '" + s.at.path + "'")
	}
	if err != nil {
		stop()
		s.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("%w: ssh cannot run %s: %w", ErrUnreachable, name, err)
	}
	started.wait = func() {
		timer := time.AfterFunc(sshGrace, started.kill)
		_ = session.Wait()
		timer.Stop()
		stop()
	}
	return started, nil
}

// session reuses the connection or opens a new one: a server may end it, or allow one session on each.
func (s *sshServer) session(ctx context.Context) (*ssh.Session, error) {
	if s.client != nil {
		if session, err := openSession(ctx, s.client); err == nil {
			return session, nil
		}
		s.close()
	}
	client, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	session, err := openSession(ctx, client)
	if err != nil {
		return nil, err
	}
	s.client = client
	return session, nil
}

// openSession closes the connection if it fails, after the timeout of connecting.
func openSession(ctx context.Context, client *ssh.Client) (*ssh.Session, error) {
	opening, cancel := context.WithTimeout(ctx, bounded.DialTimeout+bounded.HandshakeTimeout)
	defer cancel()
	stop := context.AfterFunc(opening, func() { _ = client.Close() })
	session, err := client.NewSession()
	if stop() && err == nil {
		return session, nil
	}
	_ = client.Close()
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case opening.Err() != nil:
		return nil, fmt.Errorf("%w: the ssh server opened no session in time", ErrUnreachable)
	}
	return nil, fmt.Errorf("%w: ssh: %w", ErrUnreachable, err)
}

func (s *sshServer) close() {
	if s.client != nil {
		_ = s.client.Close()
		s.client = nil
	}
}

func (s *sshServer) connect(ctx context.Context) (*ssh.Client, error) {
	known, err := s.credentials.knownHosts(s.at)
	if err != nil {
		return nil, err
	}
	handshake, cancel := context.WithTimeout(ctx, bounded.DialTimeout+bounded.HandshakeTimeout)
	defer cancel()
	method, done, err := s.credentials.method(handshake)
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	defer done()
	dialer := &net.Dialer{Timeout: bounded.DialTimeout, KeepAlive: bounded.KeepAlive}
	address := net.JoinHostPort(s.at.host, s.at.port)
	connection, err := dialer.DialContext(handshake, "tcp", address)
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	if err != nil {
		if connection != nil {
			_ = connection.Close()
		}
		return nil, asSlowError(ctx, err)
	}
	stop := context.AfterFunc(handshake, func() { _ = connection.Close() })
	secured, channels, requests, err := ssh.NewClientConn(connection, address, &ssh.ClientConfig{
		User:              s.at.user,
		Auth:              []ssh.AuthMethod{method},
		HostKeyCallback:   known.check,
		HostKeyAlgorithms: known.algorithms(),
	})
	if !stop() || err != nil {
		_ = connection.Close()
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case handshake.Err() != nil:
			return nil, fmt.Errorf("%w: the ssh handshake took too long", ErrUnreachable)
		case errors.Is(err, ErrHostKey):
			return nil, err
		case strings.Contains(err.Error(), "unable to authenticate"):
			return nil, fmt.Errorf("%w: the server accepts none of the ssh keys for user %q", ErrUnauthorized, s.at.user)
		}
		return nil, fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return ssh.NewClient(secured, channels, requests), nil
}

// method returns how to authenticate. done frees its resources.
func (c SSHCredentials) method(ctx context.Context) (method ssh.AuthMethod, done func(), err error) {
	done = func() {}
	if c.Key != "" {
		signer, err := parseSSHKey(c.Key, c.Passphrase)
		if err != nil {
			return nil, nil, err
		}
		return ssh.PublicKeys(signer), done, nil
	}
	socket := os.Getenv("SSH_AUTH_SOCK")
	if socket == "" {
		return nil, nil, fmt.Errorf(
			"%w: ssh needs a private key; give one to the provider, or start an agent and set SSH_AUTH_SOCK",
			ErrUnauthorized,
		)
	}
	connection, err := new(net.Dialer).DialContext(ctx, "unix", socket)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: the ssh agent at SSH_AUTH_SOCK does not answer", ErrUnauthorized)
	}
	stop := context.AfterFunc(ctx, func() { _ = connection.Close() })
	return ssh.PublicKeysCallback(agent.NewClient(connection).Signers), func() {
		stop()
		_ = connection.Close()
	}, nil
}

// parseSSHKey returns errors without anything of the key.
func parseSSHKey(text, passphrase string) (ssh.Signer, error) {
	pem := []byte(armor.Normalize(text))
	signer, err := ssh.ParsePrivateKey(pem)
	if errors.As(err, new(*ssh.PassphraseMissingError)) {
		if passphrase == "" {
			return nil, errors.New("the ssh key has a passphrase; give it, too")
		}
		if signer, err = ssh.ParsePrivateKeyWithPassphrase(pem, []byte(passphrase)); err != nil {
			return nil, errors.New("the ssh key's passphrase is wrong, or the key cannot be read")
		}
	}
	if err != nil {
		return nil, errors.New("the ssh key cannot be read; it is the private key's text, from \"-----BEGIN\" to \"-----END ... KEY-----\"")
	}
	return signer, nil
}

var (
	sshNotFound = regexp.MustCompile(
		`(?i)not found|does not exist|could not be found|cannot find|does not appear to be a git repository|no such (file|project|repository)`,
	)
	sshUnauthorized = regexp.MustCompile(`(?i)denied|not authorized|unauthorized|forbidden|no permission|not have permission|insufficient`)
)

func (s *sshServer) explain(said string) error {
	said = wording.OneLine(said)
	switch {
	case sshUnauthorized.MatchString(said):
		return fmt.Errorf("%w: the server says: %s", ErrUnauthorized, said)
	case sshNotFound.MatchString(said):
		return fmt.Errorf("%w: the server says: %s", ErrNotFound, said)
	}
	return fmt.Errorf("the server says: %s", said)
}

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
