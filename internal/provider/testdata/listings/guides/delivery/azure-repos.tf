# Validated only: dev.azure.com is recognized by its name.
variable "azure_devops_token" {
  default = "a-token"
}
