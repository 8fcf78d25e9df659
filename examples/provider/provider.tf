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

# The token for Git can also come from the environment: FLOTILLA_GIT_TOKEN.
provider "flotilla" {
  git = {
    author_name  = "Platform Team"
    author_email = "platform@example.com"
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
