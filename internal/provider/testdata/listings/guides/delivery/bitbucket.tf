# Validated only: bitbucket.org is recognized by its name.
variable "bitbucket_api_token" {
  default = "a-token"
}

variable "bitbucket_access_token" {
  default = "a-token"
}

locals {
  production = provider::flotilla::fleet({ environment = "prod" })
}
