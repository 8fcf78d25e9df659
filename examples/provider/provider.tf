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

  # Whose signatures content needs before it is rendered into final objects.
  verification = {
    sources = [
      { url = "https://git.example.com/shop", keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPa8pkHtx9+vKUODi0Lk7O1A8+4kCBjlt4FpZbqF/mTO release@shop.example.com"] },
      {
        url = "oci://registry.example.com/shop"
        keys = [<<-EOT
          -----BEGIN PUBLIC KEY-----
          MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEahtW0rkKIjh7poHY0mJflb9xeMDU
          OuwvfKDFhTyfokivVEhiwDCUD9qAdzvLU369n/o6ktVIBMDDl6D+Oaw0Tg==
          -----END PUBLIC KEY-----
          EOT
        ]
      },
      { url = "https://charts.example.com", unsigned = true },
    ]
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
