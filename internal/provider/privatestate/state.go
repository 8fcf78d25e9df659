// Package privatestate reads and writes the private state of resources.
package privatestate

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/flotilla/terraform-provider-flotilla/internal/provider/tfvalue"
)

// State is the used part of Terraform's private state.
type State interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// Take removes and reads a value. It returns false if there is none that can be read.
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
	save(ctx, key, value, json.Marshal, private, diagnostics)
}

// SaveSealed is [Save] for a large value.
func SaveSealed(ctx context.Context, key string, value any, private State, diagnostics *diag.Diagnostics) {
	save(ctx, key, value, Seal, private, diagnostics)
}

func save(ctx context.Context, key string, value any, write func(any) ([]byte, error), private State, diagnostics *diag.Diagnostics) {
	text, err := write(value)
	if err != nil {
		diagnostics.AddError("Private state cannot be written", err.Error())
		return
	}
	diagnostics.Append(private.SetKey(ctx, key, text)...)
}

// LoadSealed returns nil if there is no value that can be read. Then a warning has instead, the provider's replacement
// for it.
func LoadSealed[T any](ctx context.Context, key, instead string, private State, diagnostics *diag.Diagnostics) *T {
	text, diags := private.GetKey(ctx, key)
	if diagnostics.Append(diags...); text == nil || diags.HasError() {
		return nil
	}
	value := new(T)
	if err := Unseal(text, value); err != nil {
		diagnostics.AddWarning("Private state cannot be read", tfvalue.Sentence(fmt.Sprintf("%s: %s", instead, err)))
		return nil
	}
	return value
}
