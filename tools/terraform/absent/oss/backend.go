// Package oss stands for a backend that Terraform keeps in a module of its own, which has no releases.
package oss

import (
	"github.com/hashicorp/terraform/internal/backend"
	"github.com/hashicorp/terraform/internal/backend/remote-state/inmem"
)

// New returns the backend that keeps states in memory.
func New() backend.Backend { return inmem.New() }
