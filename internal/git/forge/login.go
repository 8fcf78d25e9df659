package forge

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// anyTokenUser is GitHub's for Apps. GitHub, GitLab, Gitea, Forgejo and Azure Repos accept a token with any username.
const anyTokenUser = "x-access-token"

// GitLogin returns the credentials for Git over https. If bearer is true, the password is a bearer token.
func GitLogin(server string, c Credentials) (username, password string, bearer bool) {
	username, password = c.Username, c.asToken()
	switch {
	case KindOf(server).Kind().bearerJWT && secret.IsJWT(password):
		return "", password, true
	case username != "" || c.Token != "":
		username = TokenUser(server, username, anyTokenUser)
	}
	return username, password, false
}

// SignGit adds the credentials for Git to a request.
func (c Credentials) SignGit(request *http.Request) {
	username, password, bearer := GitLogin(request.URL.Hostname(), c)
	switch {
	case bearer:
		request.Header.Set("Authorization", "Bearer "+password)
	case username != "" || password != "":
		request.SetBasicAuth(username, password)
	}
}

// TokenUser returns the username beside a token: the server's, the given one or fallback.
func TokenUser(server, given, fallback string) string {
	kind := KindOf(server).Kind()
	if given == "" {
		return cmp.Or(kind.tokenUser, fallback)
	}
	if kind.mailUser != "" && strings.Contains(given, "@") {
		return kind.mailUser
	}
	return given
}

// TokenUsers returns all usernames beside tokens, which answers may encode.
func TokenUsers() []string {
	users := []string{anyTokenUser}
	for _, kind := range Kinds() {
		users = append(users, kind.tokenUser, kind.mailUser)
	}
	return slices.DeleteFunc(users, func(user string) bool { return user == "" })
}

// asBearer works on GitLab for personal, project, group and OAuth tokens.
func (c Credentials) asBearer(request *http.Request) {
	if token := c.asToken(); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
}

func (c Credentials) asTokenOrBasic(request *http.Request, scheme string) {
	switch {
	case c.Token != "":
		request.Header.Set("Authorization", scheme+" "+c.Token)
	case c.Username != "":
		request.SetBasicAuth(c.Username, c.Password)
	}
}

func (c Credentials) asToken() string { return cmp.Or(c.Token, c.Password) }
