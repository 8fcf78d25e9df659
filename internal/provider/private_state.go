package provider

import (
	"context"
	"encoding/json"

	"github.com/hashicorp/terraform-plugin-framework/diag"
)

// privateState is the part of Terraform's private state that is used here.
type privateState interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func savePrivate(ctx context.Context, key string, value any, private privateState, diagnostics *diag.Diagnostics) {
	text, err := json.Marshal(value)
	if err != nil {
		diagnostics.AddError("Private state cannot be written", err.Error())
		return
	}
	diagnostics.Append(private.SetKey(ctx, key, text)...)
}
