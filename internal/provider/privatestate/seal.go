package privatestate

import (
	"bytes"
	"compress/gzip"
	"encoding/ascii85"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
)

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

// compressors are reused: making one takes longer than compressing a small text.
var compressors = sync.Pool{New: func() any {
	writer, _ := gzip.NewWriterLevel(io.Discard, gzip.BestCompression)
	return writer
}}

// Seal compresses a large value to text.
func Seal(value any) ([]byte, error) {
	content, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var packed bytes.Buffer
	writer := compressors.Get().(*gzip.Writer)
	defer compressors.Put(writer)
	writer.Reset(&packed)
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
