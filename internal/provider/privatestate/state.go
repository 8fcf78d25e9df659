// Package privatestate reads and writes the private state of resources.
package privatestate

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/ascii85"
	"encoding/json"
	"fmt"
	"io"
	"strings"

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

const (
	// format is the only format that Unseal reads.
	format = 1
	// maxSealed bounds the unpacked size: a state may have been edited.
	maxSealed = 256 << 20
)

// sealed is in private state, which must be JSON.
type sealed struct {
	Format int    `json:"format"`
	Data   string `json:"data"` // gzipped JSON in ascii85, without characters to escape
}

// Terraform and the framework encode in base64, so each byte counts almost double.
var (
	toJSONText   = strings.NewReplacer(`"`, "v", "&", "w", "<", "x", ">", "y", `\`, "~")
	fromJSONText = strings.NewReplacer("v", `"`, "w", "&", "x", "<", "y", ">", "~", `\`)
)

// Seal compresses a large value to text.
func Seal(value any) ([]byte, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	writer, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression) // the level is valid
	if _, err := writer.Write(content); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	text85 := make([]byte, ascii85.MaxEncodedLen(packed.Len()))
	text85 = text85[:ascii85.Encode(text85, packed.Bytes())]
	return json.Marshal(sealed{Format: format, Data: toJSONText.Replace(string(text85))})
}

// Unseal reads a value that Seal has written.
func Unseal(text []byte, value any) error {
	var s sealed
	if err := json.Unmarshal(text, &s); err != nil {
		return err
	}
	if s.Format != format {
		return fmt.Errorf("it has format %d, of another version of the provider", s.Format)
	}
	text85 := []byte(fromJSONText.Replace(s.Data))
	packed := make([]byte, 4*len(text85))
	length, _, err := ascii85.Decode(packed, text85, true)
	if err != nil {
		return err
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(packed[:length]))
	if err != nil {
		return err
	}
	content, err := io.ReadAll(io.LimitReader(unpacked, maxSealed))
	if err != nil {
		return err
	}
	return json.Unmarshal(content, value)
}
