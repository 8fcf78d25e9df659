package wire

import (
	"bytes"

	"github.com/vmihailenco/msgpack/v5"
)

// Writer writes a value piece by piece. Whoever uses it knows the schema: nothing checks that what is written is of any
// type. What it writes into is memory, so that no error is possible.
type Writer struct {
	message *bytes.Buffer
	encoder *msgpack.Encoder
}

// NewWriter begins a value.
func NewWriter() *Writer {
	var message bytes.Buffer
	return &Writer{&message, msgpack.NewEncoder(&message)}
}

// Bytes returns what was written.
func (w *Writer) Bytes() []byte { return w.message.Bytes() }

// Null writes a value that is null.
func (w *Writer) Null() { _ = w.encoder.EncodeNil() }

// Text writes a string, or a key of a map.
func (w *Writer) Text(text string) { _ = w.encoder.EncodeString(text) }

// List begins a list of so many values, which follow.
func (w *Writer) List(length int) { _ = w.encoder.EncodeArrayLen(length) }

// Map begins a map or an object of so many entries: the key and the value of each follow.
func (w *Writer) Map(length int) { _ = w.encoder.EncodeMapLen(length) }
