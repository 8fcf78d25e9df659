variable "signing_key" {
}
