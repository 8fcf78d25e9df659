terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

# The token can also come from the environment: FLOTILLA_GIT_TOKEN.
provider "flotilla" {
  git = {
    author_name  = "Platform Team"
    author_email = "platform@example.com"
  }
}
