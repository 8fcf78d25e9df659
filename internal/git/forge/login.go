package forge

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/shared/secret"
)

// anyTokenUser is documented by GitHub for Apps. GitHub, GitLab, Gitea, Forgejo and Azure Repos accept a token as the password
// of any username.
const anyTokenUser = "x-access-token"

// GitLogin returns the credentials for Git over https, empty for anonymous access. If bearer is true, the password is a bearer
// token.
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

// TokenUser returns the username for a token over https: the server's, else the given one, else fallback.
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

// TokenUsers returns all usernames beside tokens. An answer may encode a token with one of them.
func TokenUsers() []string {
	users := []string{anyTokenUser}
	for _, kind := range Kinds() {
		users = append(users, kind.tokenUser, kind.mailUser)
	}
	return slices.DeleteFunc(users, func(user string) bool { return user == "" })
}

// asBearer sends a bearer token, which GitLab accepts for personal, project, group and OAuth tokens.
func (c Credentials) asBearer(request *http.Request) {
	if token := c.asToken(); token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
}

// asTokenOrBasic sends a token with its scheme, or username and password.
func (c Credentials) asTokenOrBasic(request *http.Request, scheme string) {
	switch {
	case c.Token != "":
		request.Header.Set("Authorization", scheme+" "+c.Token)
	case c.Username != "":
		request.SetBasicAuth(c.Username, c.Password)
	}
}

func (c Credentials) asToken() string { return cmp.Or(c.Token, c.Password) }
