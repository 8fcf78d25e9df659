package forge_test

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// statusFixture has the requests and answers of a kind of Git host for a status.
type statusFixture struct {
	read   func(found ...fields) []exchange // requests for the status
	status func(state, description, link string) fields
	write  string // request that sets the status
	body   func(state, description, link string) string
	answer fields // answer to the write
	// Names of the states.
	success, failure, error, pending string
	commit, repository               string // requests for the commit and the repository
}

func toJSON(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

// statusFixtures returns the fixture of each kind.
func statusFixtures() map[forge.Forge]statusFixture {
	key := forge.StatusKey(statusContext)
	const at = "2026-01-26T19:00:00Z"
	optional := func(field, link string, body fields) string {
		if link != "" {
			body[field] = link
		}
		return toJSON(body)
	}
	gitea := statusFixture{
		read: func(found ...fields) []exchange {
			exchanges := []exchange{{request: teaStatuses, answer: teaCombined(found...)}}
			if len(found) > 0 {
				exchanges = append(exchanges, exchange{request: strings.Replace(teaStatuses, "page=1", "page=2", 1), answer: teaCombined()})
			}
			return exchanges
		},
		status: func(state, description, link string) fields {
			return withFields(teaStatusFields(1, statusContext, state, at), fields{"description": description, "target_url": link})
		},
		write: "POST " + tea + "/statuses/" + newHead,
		body: func(state, description, link string) string {
			return optional("target_url", link, fields{"context": statusContext, "state": state, "description": description})
		},
		answer: fields{}, success: "success", failure: "failure", error: "error", pending: "pending",
		commit: "GET " + tea + "/git/commits/" + newHead, repository: "GET " + tea,
	}
	github := gitea
	github.read = func(found ...fields) []exchange {
		return []exchange{{request: hubStatuses, answer: hubCombined(found...)}}
	}
	github.status = func(state, description, link string) fields {
		status := hubStatusFields(1, statusContext, state, at)
		status["description"], status["target_url"] = description, link
		return status
	}
	github.write, github.commit, github.repository = "POST "+hub+"/statuses/"+newHead, "GET "+hub+"/git/commits/"+newHead, "GET "+hub
	bitbucketSent := func(state, description, link string) string {
		return toJSON(fields{"key": key, "name": statusContext, "state": state, "description": description, "url": link})
	}
	return map[forge.Forge]statusFixture{
		forge.Gitea: gitea, forge.Forgejo: gitea, forge.GitHub: github,
		forge.GitLab: {
			read: func(found ...fields) []exchange {
				return []exchange{{request: labStatuses, answer: append([]fields{}, found...)}}
			},
			status: func(state, description, link string) fields {
				return labStatusFields(1, statusContext, state, at, fields{"description": description, "target_url": link})
			},
			write: "POST " + labRepo + "/statuses/" + newHead,
			body: func(state, description, link string) string {
				return toJSON(fields{"name": statusContext, "state": state, "description": description, "target_url": link})
			},
			answer: labStatusFields(1, statusContext, "success", at), success: "success", failure: "failed", error: "failed", pending: "pending",
			commit: "GET " + labRepo + "/repository/commits/" + newHead, repository: "GET " + labRepo,
		},
		forge.Azure: {
			read: func(found ...fields) []exchange { return []exchange{{request: azStatuses, answer: azList(found...)}} },
			status: func(state, description, link string) fields {
				return withFields(azStatusFields(1, "flotilla", "prod", state, at), fields{"description": description, "targetUrl": link})
			},
			write: "POST " + azure + "/commits/" + newHead + "/statuses" + azVersion,
			body: func(state, description, link string) string {
				return optional(
					"targetUrl",
					link,
					fields{"context": fields{"genre": "flotilla", "name": "prod"}, "state": state, "description": description},
				)
			},
			answer: azStatusFields(1, "flotilla", "prod", "succeeded", at), success: "succeeded", failure: "failed", error: "error", pending: "pending",
			commit: "GET " + azure + "/commits/" + newHead + azVersion, repository: "GET " + azure + azVersion,
		},
		forge.Bitbucket: {
			read: func(found ...fields) []exchange {
				return []exchange{{request: cloudStatuses, answer: cloudPage(found...)}}
			},
			status: func(state, description, link string) fields {
				return withFields(cloudStatusFields(key, statusContext, state, "", at), fields{"description": description, "url": link})
			},
			write: "POST " + cloud + "/commit/" + newHead + "/statuses/build", body: bitbucketSent,
			answer:  cloudStatusFields(key, statusContext, "SUCCESSFUL", "", at),
			success: "SUCCESSFUL", failure: "FAILED", error: "FAILED", pending: "INPROGRESS",
			commit: "GET " + cloud + "/commit/" + newHead, repository: "GET " + cloud,
		},
		forge.BitbucketDataCenter: {
			read: func(found ...fields) []exchange {
				request := "GET " + centerRepo + "/commits/" + newHead + "/builds?key=" + key
				if len(found) == 0 {
					return []exchange{{request: request, status: 404, answer: centerRefusal("NoSuchBuildStatusException", "no build")}}
				}
				return []exchange{{request: request, answer: found[0]}}
			},
			status: func(state, description, link string) fields {
				return withFields(centerStatusFields(key, statusContext, state, "", 0), fields{"description": description, "url": link})
			},
			write: "POST " + centerRepo + "/commits/" + newHead + "/builds", body: bitbucketSent,
			success: "SUCCESSFUL", failure: "FAILED", error: "FAILED", pending: "INPROGRESS",
			commit: "GET " + centerRepo + "/commits/" + newHead, repository: "GET " + centerRepo,
		},
	}
}

// writeExchange returns the request that sets a status, and its answer.
func (w statusFixture) writeExchange(body string) exchange {
	if w.answer == nil {
		return exchange{request: w.write, body: body, status: http.StatusNoContent}
	}
	return exchange{request: w.write, body: body, status: http.StatusCreated, answer: w.answer}
}
