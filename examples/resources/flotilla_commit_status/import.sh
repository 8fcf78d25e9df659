# The import ID is "<url>#<commit>:<context>". Where the kind of the Git host does not follow from its name, the URL ends with
# "?forge=<kind>", and where its API is elsewhere with "&api_url=<url>".
terraform import flotilla_commit_status.control_plane 'https://git.example.com/platform/control-plane.git?forge=gitea#6c1d7c8a8d1c4f6f0fd0f1c64a1c7c2d6bb4a3f0:flotilla/prod'

# Terraform 1.12 and later also take its identity, in a configuration:
# import {
#   to = flotilla_commit_status.control_plane
#   identity = {
#     url     = "https://git.example.com/platform/control-plane.git"
#     commit  = "6c1d7c8a8d1c4f6f0fd0f1c64a1c7c2d6bb4a3f0"
#     context = "flotilla/prod"
#     forge   = "gitea"
#   }
# }
