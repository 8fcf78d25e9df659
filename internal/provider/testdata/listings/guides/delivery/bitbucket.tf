# Planned only: no stand-in has the requests of this Git host.
variable "bitbucket_api_token" {
  default = "a-token"
}

variable "bitbucket_access_token" {
  default = "a-token"
}

locals {
  production = provider::flotilla::fleet({ environment = "prod" })
}
