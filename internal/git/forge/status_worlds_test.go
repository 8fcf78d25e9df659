package forge_test

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/flotilla/terraform-provider-flotilla/internal/git/forge"
)

// statusWorld is how a kind of Git host is asked for a status, how it has one, and how one is set.
type statusWorld struct {
	read  func(found ...fields) []exchange // the requests that look for it
	has   func(state, description, link string) fields
	write string // the request that sets it
	sent  func(state, description, link string) string
	made  fields // what is answered
	// The word of each state.
	success, failure, error, pending string
	commit, repository               string // the requests for them
}

func toJSON(value any) string {
	text, _ := json.Marshal(value)
	return string(text)
}

// statusWorlds are those of the kinds.
func statusWorlds() map[forge.Forge]statusWorld {
	key := forge.StatusKey(rolledOut)
	const at = "2026-01-26T19:00:00Z"
	optional := func(field, link string, sent fields) string {
		if link != "" {
			sent[field] = link
		}
		return toJSON(sent)
	}
	gitea := statusWorld{
		read: func(found ...fields) []exchange {
			exchanges := []exchange{{request: teaStatuses, answer: teaCombined(found...)}}
			if len(found) > 0 {
				exchanges = append(exchanges, exchange{request: strings.Replace(teaStatuses, "page=1", "page=2", 1), answer: teaCombined()})
			}
			return exchanges
		},
		has: func(state, description, link string) fields {
			return with(teaSaid(1, rolledOut, state, at), fields{"description": description, "target_url": link})
		},
		write: "POST " + tea + "/statuses/" + newHead,
		sent: func(state, description, link string) string {
			return optional("target_url", link, fields{"context": rolledOut, "state": state, "description": description})
		},
		made: fields{}, success: "success", failure: "failure", error: "error", pending: "pending",
		commit: "GET " + tea + "/git/commits/" + newHead, repository: "GET " + tea,
	}
	github := gitea
	github.read = func(found ...fields) []exchange {
		return []exchange{{request: hubStatuses, answer: hubCombined(found...)}}
	}
	github.has = func(state, description, link string) fields {
		said := hubSaid(1, rolledOut, state, at)
		said["description"], said["target_url"] = description, link
		return said
	}
	github.write, github.commit, github.repository = "POST "+hub+"/statuses/"+newHead, "GET "+hub+"/git/commits/"+newHead, "GET "+hub
	bitbucketSent := func(state, description, link string) string {
		return toJSON(fields{"key": key, "name": rolledOut, "state": state, "description": description, "url": link})
	}
	return map[forge.Forge]statusWorld{
		forge.Gitea: gitea, forge.Forgejo: gitea, forge.GitHub: github,
		forge.GitLab: {
			read: func(found ...fields) []exchange {
				return []exchange{{request: labStatuses, answer: append([]fields{}, found...)}}
			},
			has: func(state, description, link string) fields {
				return labSaid(1, rolledOut, state, at, fields{"description": description, "target_url": link})
			},
			write: "POST " + labRepo + "/statuses/" + newHead,
			sent: func(state, description, link string) string {
				return toJSON(fields{"name": rolledOut, "state": state, "description": description, "target_url": link})
			},
			made: labSaid(1, rolledOut, "success", at), success: "success", failure: "failed", error: "failed", pending: "pending",
			commit: "GET " + labRepo + "/repository/commits/" + newHead, repository: "GET " + labRepo,
		},
		forge.Azure: {
			read: func(found ...fields) []exchange { return []exchange{{request: azStatuses, answer: azList(found...)}} },
			has: func(state, description, link string) fields {
				return with(azSaid(1, "flotilla", "prod", state, at), fields{"description": description, "targetUrl": link})
			},
			write: "POST " + azure + "/commits/" + newHead + "/statuses" + azVersion,
			sent: func(state, description, link string) string {
				return optional(
					"targetUrl",
					link,
					fields{"context": fields{"genre": "flotilla", "name": "prod"}, "state": state, "description": description},
				)
			},
			made: azSaid(1, "flotilla", "prod", "succeeded", at), success: "succeeded", failure: "failed", error: "error", pending: "pending",
			commit: "GET " + azure + "/commits/" + newHead + azVersion, repository: "GET " + azure + azVersion,
		},
		forge.Bitbucket: {
			read: func(found ...fields) []exchange {
				return []exchange{{request: cloudStatuses, answer: cloudPage(found...)}}
			},
			has: func(state, description, link string) fields {
				return with(cloudSaid(key, rolledOut, state, "", at), fields{"description": description, "url": link})
			},
			write: "POST " + cloud + "/commit/" + newHead + "/statuses/build", sent: bitbucketSent,
			made:    cloudSaid(key, rolledOut, "SUCCESSFUL", "", at),
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
			has: func(state, description, link string) fields {
				return with(centerSaid(key, rolledOut, state, "", 0), fields{"description": description, "url": link})
			},
			write: "POST " + centerRepo + "/commits/" + newHead + "/builds", sent: bitbucketSent,
			success: "SUCCESSFUL", failure: "FAILED", error: "FAILED", pending: "INPROGRESS",
			commit: "GET " + centerRepo + "/commits/" + newHead, repository: "GET " + centerRepo,
		},
	}
}

// writes is the request that sets a status, and its answer.
func (w statusWorld) writes(body string) exchange {
	if w.made == nil {
		return exchange{request: w.write, body: body, status: http.StatusNoContent}
	}
	return exchange{request: w.write, body: body, status: http.StatusCreated, answer: w.made}
}
