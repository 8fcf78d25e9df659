package provider_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/testing/giteatest"
)

// hostileServer is a Git server and API that repeats the secrets of requests. The first path segment selects the response.
type hostileServer struct {
	backend    http.Handler
	refusesAll atomic.Bool // every request, for any path
}

func newHostileServer(t *testing.T, root string) (*hostileServer, *httptest.Server) {
	t.Helper()
	h := &hostileServer{backend: httpBackend(t, root)}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return h, server
}

func (h *hostileServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	echo := strings.Join(requestSecrets(r), " ")
	response, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	isPush := strings.HasSuffix(r.URL.Path, "/git-receive-pack")
	if h.refusesAll.Load() {
		response = "401"
	}
	if after, ok := strings.CutPrefix(response, "push-"); ok && isPush {
		response = after
		_, _ = io.Copy(io.Discard, r.Body)
	} else if ok {
		response = "serve"
	}
	if status, err := strconv.Atoi(response); err == nil {
		w.WriteHeader(status)
		fmt.Fprintf(w, "no, %s", echo)
		return
	}
	switch response {
	case "serve":
		r.URL.Path = "/" + rest
		h.backend.ServeHTTP(w, r)
	case "cut":
		// Any truncation of this message ends within a secret.
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, strings.Repeat(requestSecrets(r)[0]+"--", 20))
	case "api":
		status, _ := strconv.Atoi(strings.SplitN(rest, "/", 2)[0])
		w.Header().Set("Content-Type", "application/json")
		if status == http.StatusTooManyRequests {
			w.Header().Set("Retry-After", "3600")
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(map[string]any{"message": echo, "errors": requestSecrets(r)})
	case "redirect":
		secret := requestSecrets(r)[0]
		to := url.URL{
			Scheme:   "http",
			User:     url.UserPassword("me", secret),
			Host:     "127.0.0.1:1",
			Path:     "/" + secret,
			RawQuery: url.Values{"token": {secret}}.Encode(),
		}
		http.Redirect(w, r, to.String(), http.StatusTemporaryRedirect)
	case "page":
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<html>%s</html>", echo)
	case "words":
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		fmt.Fprint(w, pktLine("# service=git-upload-pack\n"), "0000", pktLine("ERR "+echo))
	case "hang":
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	case "report", "lock":
		reason := echo
		if response == "lock" {
			reason = "cannot lock ref: " + echo
		}
		w.Header().Set("Content-Type", "application/x-git-receive-pack-result")
		report := pktLine("unpack ok\n") + pktLine("ng refs/heads/main "+reason+"\n") + "0000"
		fmt.Fprint(w, pktLine("\x02hook: "+echo+"\n"), pktLine("\x01"+report), "0000")
	}
}

// pktLine encodes a line of Git's protocol.
func pktLine(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// requestSecrets returns the secrets of a request in all forms, the plain one first.
func requestSecrets(r *http.Request) []string {
	var secrets []string
	if username, password, ok := r.BasicAuth(); ok {
		secrets = append(secrets, password, base64.StdEncoding.EncodeToString([]byte(username+":"+password)))
	}
	for _, name := range []string{"Authorization", "Private-Token"} {
		if kind, rest, _ := strings.Cut(r.Header.Get(name), " "); kind == "token" || kind == "Bearer" {
			secrets = append(secrets, rest)
		} else if kind != "Basic" && kind != "" {
			secrets = append(secrets, r.Header.Get(name))
		}
	}
	all := slices.Clone(secrets)
	for _, secret := range secrets {
		for _, form := range encodedForms(secret) {
			all = append(all, form)
		}
	}
	if len(all) == 0 {
		return []string{"nobody"}
	}
	return all
}

// newCanaries returns the settings with secrets, and the cells with an error to provoke.
func newCanaries(t *testing.T) (canaries, *hostileServer) {
	t.Helper()
	root := t.TempDir()
	for _, name := range []string{"empty", "taken", "based", "fine", "fine-signed"} {
		git(t, root, "init", "--quiet", "--bare", "--initial-branch=main", name+".git")
		git(t, filepath.Join(root, name+".git"), "config", "uploadpack.allowFilter", "true")
	}
	for name, file := range map[string]string{"taken": "drone/app-core/by-hand.yaml", "based": "README.md"} {
		work := t.TempDir()
		git(t, work, "clone", "--quiet", filepath.Join(root, name+".git"), ".")
		git(t, work, "checkout", "--quiet", "-B", "main")
		writeFile(t, filepath.Join(work, file), "by hand\n")
		git(t, work, "add", "--all")
		git(t, work, "commit", "--quiet", "--message", "By hand")
		git(t, work, "push", "--quiet", "origin", "main")
	}
	h, server := newHostileServer(t, root)
	tls := httptest.NewUnstartedServer(h)
	tls.Config.ErrorLog = log.New(io.Discard, "", 0) // failing handshakes
	tls.StartTLS()
	t.Cleanup(tls.Close)
	gitea := giteatest.Start(t)

	passphrase, wrong := `p4ssphrase "q" & /+ü`, `wr0ng-phrase "q" & /+ü`
	key, _ := sshKey(t, passphrase)
	body := func(pem string) string { return strings.Split(pem, "\n")[2] }
	c := canaries{
		secrets: map[string]string{
			"token": `t0ken-0123 "q" & /+ü%`, "password": `passw0rd-01 "q" & /+ü%`, "url": `cr3dentials-in-url/+`,
			"passphrase": passphrase, "wrong": wrong, "garbage": "g4rbage-0123456789abcdef", "body": body(key), "key": key,
		},
		providers: map[string]string{
			"token":    `{ token = var.secret.token }`,
			"named":    `{ username = "me", token = var.secret.token }`,
			"password": `{ username = "me", password = var.secret.password }`,
			"ssh": fmt.Sprintf(
				`{ ssh_private_key = var.secret.key, ssh_passphrase = var.secret.passphrase, ssh_known_hosts = "[%s]:%s %s" }`,
				"127.0.0.1",
				port(gitea.SSHAddr),
				gitea.SSHHostKey,
			),
			"ssh_wrong":  `{ ssh_private_key = var.secret.key, ssh_passphrase = var.secret.wrong, ssh_known_hosts = "* ` + gitea.SSHHostKey + `" }`,
			"ssh_none":   `{ ssh_private_key = var.secret.garbage, ssh_passphrase = var.secret.wrong, ssh_known_hosts = "* ` + gitea.SSHHostKey + `" }`,
			"ca":         `{ token = var.secret.token, ca_certificates = var.secret.garbage }`,
			"sign":       `{ token = var.secret.token, signing_key = var.secret.key, signing_passphrase = var.secret.passphrase }`,
			"sign_wrong": `{ token = var.secret.token, signing_key = var.secret.key, signing_passphrase = var.secret.wrong }`,
			"sign_none":  `{ signing_key = var.secret.garbage, signing_passphrase = var.secret.wrong }`,
		},
		cells: map[string]cell{},
	}
	repo := func(response, name string) string {
		return strconv.Quote(server.URL + "/" + response + "/" + name + ".git")
	}
	addCell := func(name, provider, url, extra, want string) { c.cells[name] = cell{provider, url, extra, want} }
	const (
		refused, unreachable, noCommit = "Repository refuses the credentials", "Repository cannot be reached", "Repository refuses the commit"
		unusable, noHost, noRequest    = "Repository cannot be used", "Git host cannot be reached", "Git host refuses the pull request"
		hostRefuses, denied            = "Git host refuses the credentials", "URL is not allowed"
	)
	for response, want := range map[string]string{
		"400": unusable, "401": refused, "403": refused, "404": "Repository does not exist", "429": unreachable, "500": unreachable,
		"cut": refused, "redirect": denied, "page": unreachable, "words": unusable,
	} {
		addCell("web-"+response, "token", repo(response, "empty"), "", want)
	}
	for response, want := range map[string]string{
		"401": refused, "413": noCommit, "500": unreachable, "report": noCommit, "lock": noCommit, "redirect": unreachable,
	} {
		addCell("push-"+response, "token", repo("push-"+response, "empty"), "", want)
	}
	for _, provider := range []string{"named", "password"} {
		addCell(provider+"-401", provider, repo("401", "empty"), "", refused)
		addCell(provider+"-redirect", provider, repo("redirect", "empty"), "", denied)
		addCell(provider+"-push", provider, repo("push-report", "empty"), "", noCommit)
		addCell(provider+"-forge", provider, repo("serve", "based"), proposeThrough("gitea", server.URL+"/api/403"), hostRefuses)
	}
	for _, forge := range []string{"gitea", "github", "gitlab"} {
		for api, want := range map[string]string{
			"api/401": hostRefuses, "api/403": hostRefuses, "api/404": "Repository or pull request does not exist", "api/409": noRequest,
			"api/422": noRequest, "api/429": "Git host limits requests", "api/503": noHost, "redirect": noHost, "page": noHost,
		} {
			addCell(forge+"-"+strings.ReplaceAll(api, "/", "-"), "token", repo("serve", "based"), proposeThrough(forge, server.URL+"/"+api), want)
		}
		addCell(forge+"-unreachable", "token", repo("serve", "based"), proposeThrough(forge, "http://127.0.0.1:1"), noHost)
	}
	addCell("hang", "token", repo("hang", "empty"), `timeouts = { read = "200ms" }`, "Timeout")
	addCell("push-hang", "token", repo("push-hang", "empty"), `timeouts = { create = "3s" }`, "Timeout")
	addCell("taken", "token", repo("serve", "taken"), "", "Folder does not belong to this assignment")
	addCell("no-commit", "token", repo("serve", "based"), rollbackTo(strings.Repeat("1", 40)), "Cannot roll back to this commit")
	addCell("unreachable", "token", `"http://127.0.0.1:1/o/r.git"`, "", unreachable)
	addCell("unknown-ca", "token", strconv.Quote(tls.URL+"/serve/empty.git"), "", unreachable)
	addCell("no-ca", "ca", repo("serve", "empty"), "", "Invalid certificates")
	addCell("ssh-unreachable", "ssh", `"ssh://git@127.0.0.1:1/o/r.git"`, "", unreachable)
	overSSH := strconv.Quote("ssh://git@" + gitea.SSHAddr + "/o/r.git")
	addCell("ssh-refused", "ssh", overSSH, "", refused)
	addCell("ssh-passphrase", "ssh_wrong", overSSH, "", unusable)
	addCell("ssh-garbage", "ssh_none", overSSH, "", unusable)
	addCell("sign-passphrase", "sign_wrong", repo("serve", "empty"), "", "Invalid signing key")
	addCell("sign-garbage", "sign_none", repo("serve", "empty"), "", "Invalid signing key")
	addCell("url-credentials", "token", "var.url", "", "Invalid GitOps repository")
	addCell("azure-url", "token", repo("serve", "based"), `delivery = { mode = "pull_request", forge = "azure" }`, "Invalid delivery")
	addCell(
		"api-credentials",
		"token",
		repo("serve", "based"),
		`delivery = { mode = "pull_request", forge = "gitea", api_url = var.url }`,
		"Invalid delivery",
	)
	addCell("fine", "token", repo("serve", "fine"), "", "")
	addCell("fine-signed", "sign", repo("serve", "fine-signed"), "", "")
	return c, h
}

func port(address string) string { return address[strings.LastIndexByte(address, ':')+1:] }

func proposeThrough(forge, api string) string {
	return fmt.Sprintf("delivery = { mode = \"pull_request\", forge = %q, api_url = %q }", forge, api)
}

func TestCanariesAppearInNoComparison(t *testing.T) {
	tools := acceptanceTools(t)
	c, _ := newCanaries(t)
	for name, tool := range tools {
		t.Run(name, func(t *testing.T) {
			var credentials, others strings.Builder
			used, wantErrors := map[string]bool{}, map[string]string{} // wanted error by data source
			for _, name := range slices.Sorted(maps.Keys(c.cells)) {
				cell, to := c.cells[name], &others
				switch {
				case strings.HasPrefix(name, "url-"):
					to = &credentials
				case !strings.HasPrefix(name, "web-") && !strings.HasPrefix(name, "ssh-") && name != "named-401" && name != "password-401" && name != "hang" && name != "no-commit" && name != "fine":
					continue
				}
				used[cell.provider], wantErrors[name] = true, cell.want
				commit := "null"
				if name == "no-commit" {
					commit, wantErrors[name] = strconv.Quote(strings.Repeat("1", 40)), "No such commit"
				}
				fmt.Fprintf(
					to,
					"data \"flotilla_comparison\" %q {\n  provider = flotilla.%s\n  left     = { gitops_repo = { url = %s, branch = \"main\" }, name = \"a\", commit = %s }\n"+
						"  right    = { gitops_repo = { url = %s, branch = \"main\" }, name = \"b\" }\n  timeouts = { read = \"5s\" }\n}\n",
					name,
					cell.provider,
					cell.url,
					commit,
					cell.url,
				)
			}
			head := requiredProviders + "variable \"secret\" {\n  type      = map(string)\n  ephemeral = true\n}\nvariable \"url\" {\n  type      = string\n  sensitive = true\n}\n"
			for _, alias := range slices.Sorted(maps.Keys(used)) {
				head += fmt.Sprintf("provider \"flotilla\" {\n  alias = %q\n  git   = %s\n}\n", alias, c.providers[alias])
			}
			variable, err := json.Marshal(c.secrets)
			if err != nil {
				t.Fatal(err)
			}
			t.Setenv("TF_VAR_secret", string(variable))
			t.Setenv("TF_VAR_url", "https://me:"+url.PathEscape(c.secrets["url"])+"@git.example.com/o/r.git")
			w := newWorkdir(t, tool, map[string]string{"main.tf": head})
			found := map[string]string{}
			for try, part := range []string{credentials.String(), others.String()} {
				writeFile(t, filepath.Join(w.path, "main.tf"), head+part)
				printed, err := w.runTraced(t, fmt.Sprintf("plan-%d", try), "plan", "-input=false", "-no-color")
				if err == nil {
					t.Errorf("plan %d has no error", try)
				}
				for _, message := range strings.Split(printed, "Error: ")[1:] {
					summary, rest, _ := strings.Cut(message, "\n")
					_, rest, _ = strings.Cut(rest, "with data.flotilla_comparison.")
					source, _, _ := strings.Cut(rest, ",")
					found[source] = summary
				}
			}
			for name, want := range wantErrors {
				if name == "url-credentials" {
					want = "Invalid left"
				}
				if (found[name] == "") != (want == "") || want != "Timeout" && found[name] != want && found[name] != "Invalid right" {
					t.Errorf("%s: the error is %q, want %q", name, found[name], want)
				}
			}
			checkNoSecrets(t, w.path, c.secrets)
		})
	}
}
