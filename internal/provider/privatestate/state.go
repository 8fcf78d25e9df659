// Package privatestate writes what Terraform keeps for a resource beside its state.
package privatestate

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// State is the part of Terraform's private state that is used here.
type State interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// Take reads a value that Save has written, and removes it. It is false where there is none, or none that can be read.
func Take(ctx context.Context, key string, value any, private State, diagnostics *diag.Diagnostics) bool {
	text, diags := private.GetKey(ctx, key)
	if diagnostics.Append(diags...); text == nil {
		return false
	}
	diagnostics.Append(private.SetKey(ctx, key, nil)...)
	return json.Unmarshal(text, value) == nil
}

// Save writes a value as JSON.
func Save(ctx context.Context, key string, value any, private State, diagnostics *diag.Diagnostics) {
	text, err := json.Marshal(value)
	if err != nil {
		diagnostics.AddError("Private state cannot be written", err.Error())
		return
	}
	diagnostics.Append(private.SetKey(ctx, key, text)...)
}
