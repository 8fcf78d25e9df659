terraform {
  required_providers {
    flotilla = {
      source = "flotilla/flotilla"
    }
  }
}

# Ephemeral: it gets into no plan and no state.
variable "edge_token" {
  type      = string
  ephemeral = true
  default   = null
}

variable "mimir_token" {
  type      = string
  ephemeral = true
  default   = null
}

variable "app_private_key" {
  type      = string
  ephemeral = true
  default   = null
}

# What Git needs can also come from the environment: FLOTILLA_GIT_TOKEN, or FLOTILLA_GITHUB_APP_ID and its like.
provider "flotilla" {
  git = {
    author_name  = "Platform Team"
    author_email = "platform@example.com"

    # A GitHub App in place of a token, for the repositories of one organization.
    credentials = var.app_private_key == null ? [] : [{
      url        = "https://github.com/example"
      github_app = { id = "123456", installation_id = "7890123", private_key = var.app_private_key }
    }]
  }

  # How to ask clusters what they run.
  clusters = {
    edge-1 = {
      host  = "https://edge-1.example.com:6443"
      token = var.edge_token
    }
  }

  # Credentials for the servers that flotilla_measurements asks.
  measurements = {
    credentials = [{ url = "https://mimir.example.com", token = var.mimir_token }]
  }
}
