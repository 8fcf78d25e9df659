# Planned only: no stand-in has the requests of this Git host.
variable "azure_devops_token" {
  default = "a-token"
}
