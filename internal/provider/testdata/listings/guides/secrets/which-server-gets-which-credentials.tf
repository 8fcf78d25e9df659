variable "git_token" {
  default = "a-token"
}

variable "platform_token" {
  default = "another-token"
}

variable "edge_key" {
}
