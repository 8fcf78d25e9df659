package giteatest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/base64"
	"encoding/binary"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/webtest"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/processtest"
)

// startTimeout is generous: three seconds are usual, a cold disk under a parallel build has taken twenty.
const startTimeout = 2 * time.Minute

// launch tries again with other ports if another process takes one, because Gitea cannot use an open socket.
func launch(ctx context.Context) (*Gitea, error) {
	binary, assets, err := gitea(ctx)
	if err != nil {
		return nil, err
	}
	for attempt := 1; ; attempt++ {
		server, err := start(ctx, binary, assets)
		if err == nil || attempt == 3 || !errors.Is(err, processtest.ErrPortTaken) {
			return server, err
		}
	}
}

func start(ctx context.Context, binary, assets string) (_ *Gitea, err error) {
	folder, err := os.MkdirTemp("", "giteatest-")
	if err != nil {
		return nil, err
	}
	ports, err := processtest.FreePorts(ctx, 2)
	if err != nil {
		_ = os.RemoveAll(folder)
		return nil, err
	}
	web, ssh := ports[0], ports[1]
	server := &Gitea{
		URL:      "http://127.0.0.1:" + strconv.Itoa(web),
		SSHAddr:  "127.0.0.1:" + strconv.Itoa(ssh),
		folder:   folder,
		database: databaseFolder(folder),
	}
	defer func() {
		if err != nil {
			server.stop()
		}
	}()

	hostKey := filepath.Join(folder, "ssh_host_ed25519_key")
	if server.SSHHostKey, err = writeHostKey(hostKey); err != nil {
		return nil, err
	}
	config := filepath.Join(folder, "app.ini")
	if err := os.WriteFile(config, []byte(configuration(folder, server.database, assets, hostKey, web, ssh)), 0o600); err != nil {
		return nil, err
	}
	server.process, err = processtest.Start(ctx, processtest.Command{
		Name:        "gitea",
		Binary:      binary,
		Args:        []string{"web", "--config", config, "--work-path", folder},
		Folder:      folder,
		Environment: environment(folder),
	})
	if err != nil {
		return nil, err
	}
	if err := server.process.Ready(ctx, startTimeout, server.answers); err != nil {
		return nil, err
	}
	return server, server.signUp(ctx)
}

// environment removes variables of Gitea and Git: a surrounding Git hook sets GIT_DIR. It reduces garbage collection, a fifth of
// the time of the three hooks that start Gitea for each push.
func environment(folder string) []string {
	var environment []string
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "GIT_") || strings.HasPrefix(name, "GITEA_") || name == "HOME" {
			continue
		}
		environment = append(environment, variable)
	}
	return append(environment, "HOME="+folder, "GITEA_I_AM_BEING_UNSAFE_RUNNING_AS_ROOT=true", "GOGC=400")
}

// databaseFolder returns a folder in memory, if possible: Gitea waits for the disk after each of a start's thousand statements.
func databaseFolder(folder string) string {
	inMemory, err := os.MkdirTemp("/dev/shm", "giteatest-")
	if err != nil {
		return folder
	}
	return inMemory
}

func (s *Gitea) stop() {
	s.process.Stop()
	processtest.RemoveFolder(s.folder)
	processtest.RemoveFolder(s.database)
}

// writeHostKey returns the public half of a key. Gitea would spend seconds on an RSA key.
func writeHostKey(path string) (string, error) {
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return "", err
	}
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return "", err
	}
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), 0o600); err != nil {
		return "", err
	}
	const kind = "ssh-ed25519"
	var wire []byte
	for _, field := range []string{kind, string(public)} {
		wire = binary.BigEndian.AppendUint32(wire, uint32(len(field)))
		wire = append(wire, field...)
	}
	return kind + " " + base64.StdEncoding.EncodeToString(wire), nil
}

// configuration returns an app.ini: nothing leaves loopback, passwords are hashed as cheaply as bcrypt can, and OAuth2, which
// would make an RSA key, is off. A push updates the database before it returns: until then, the API calls a repository empty.
// Only repositories that ask for Actions have them.
func configuration(folder, database, assets, hostKey string, web, ssh int) string {
	return fmt.Sprintf(`
APP_NAME  = giteatest
RUN_MODE  = prod
WORK_PATH = %[1]s

[server]
PROTOCOL            = http
HTTP_ADDR           = 127.0.0.1
HTTP_PORT           = %[4]d
ROOT_URL            = http://127.0.0.1:%[4]d/
STATIC_ROOT_PATH    = %[2]s
OFFLINE_MODE        = true
LFS_START_SERVER    = false
START_SSH_SERVER    = true
SSH_DOMAIN          = 127.0.0.1
SSH_LISTEN_HOST     = 127.0.0.1
SSH_PORT            = %[5]d
SSH_LISTEN_PORT     = %[5]d
SSH_SERVER_HOST_KEYS    = %[3]s
BUILTIN_SSH_SERVER_USER = git

[repository]
SCRIPT_TYPE        = sh
DEFAULT_REPO_UNITS = repo.code,repo.releases,repo.issues,repo.pulls,repo.wiki,repo.projects,repo.packages

[database]
DB_TYPE = sqlite3
PATH    = %[6]s/gitea.db

[security]
INSTALL_LOCK        = true
PASSWORD_HASH_ALGO  = bcrypt$4
PASSWORD_COMPLEXITY = off

[log]
MODE  = console
LEVEL = Warn

[queue]
TYPE = channel

[queue.push_update]
TYPE = immediate

[session]
PROVIDER = memory

[indexer]
ISSUE_INDEXER_TYPE = db

[oauth2]
ENABLED = false

[actions]
ENABLED = true

[cron.start_schedule_tasks]
SCHEDULE = @every 1s

[webhook]
ALLOWED_HOST_LIST = loopback

[packages]
ENABLED = true

[mirror]
ENABLED = false

[cron.update_checker]
ENABLED = false

[git.config]
core.fsync               = none
gc.auto                  = 0
maintenance.auto         = false
receive.autogc           = false
receive.updateserverinfo = false
`, folder, assets, hostKey, web, ssh, filepath.ToSlash(database))
}

func (s *Gitea) answers(ctx context.Context) error {
	if err := s.call(ctx, User{}, http.MethodGet, "/version", nil, nil); err != nil {
		return err
	}
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.SSHAddr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// signUp creates the first account, an administrator, in 50 ms. `gitea admin user create` takes a second.
func (s *Gitea) signUp(ctx context.Context) error {
	admin := newUser("admin")
	form := url.Values{
		"user_name": {admin.Name},
		"email":     {admin.email()},
		"password":  {admin.Password},
		"retype":    {admin.Password},
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+"/user/sign_up", strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := webtest.Transport.RoundTrip(request)
	if err != nil {
		return err
	}
	_ = response.Body.Close()
	if response.StatusCode != http.StatusSeeOther {
		return fmt.Errorf("Gitea answered %s to the sign-up of its administrator", response.Status)
	}
	if admin.Token, err = s.token(ctx, admin); err != nil {
		return err
	}
	s.admin = admin
	return nil
}
