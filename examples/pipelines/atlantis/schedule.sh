#!/bin/sh
# Applies the main branch by the API of Atlantis. Run it every ten minutes from cron: it applies merged changes, moves rollouts and
# repairs drift. ATLANTIS_URL, ATLANTIS_API_SECRET, REPOSITORY ("platform/fleet") and GIT_HOST ("Github", "Gitlab" or "Gitea") come
# from the environment.
set -eu
curl --fail --silent --show-error --header "X-Atlantis-Token: $ATLANTIS_API_SECRET" --header "Content-Type: application/json" \
  --data "{\"Repository\": \"$REPOSITORY\", \"Ref\": \"main\", \"Type\": \"$GIT_HOST\", \"Projects\": [\"fleet\"]}" "$ATLANTIS_URL/api/apply"
