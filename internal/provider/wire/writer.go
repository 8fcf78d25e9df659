package wire

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"
)

// Writer writes a value in parts to memory, so it has no errors. It does not check the schema.
type Writer struct {
	message *bytes.Buffer
	encoder *msgpack.Encoder
}

// NewWriter returns an empty writer.
func NewWriter() *Writer {
	var message bytes.Buffer
	return &Writer{&message, msgpack.NewEncoder(&message)}
}

// Bytes returns the value.
func (w *Writer) Bytes() []byte { return w.message.Bytes() }

// Null writes null.
func (w *Writer) Null() { _ = w.encoder.EncodeNil() }

// Text writes a string, or a key of a map.
func (w *Writer) Text(text string) { _ = w.encoder.EncodeString(text) }

// List begins a list; elements follow.
func (w *Writer) List(length int) { _ = w.encoder.EncodeArrayLen(length) }

// Map begins a map or object; keys and values follow.
func (w *Writer) Map(length int) { _ = w.encoder.EncodeMapLen(length) }
