package wire

import (
	"encoding/binary"

	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

// Writer writes a value piece by piece. The zero value is ready. Whoever uses it knows the schema: nothing
// checks that what is written is of any type.
type Writer struct {
	message []byte
}

// Bytes returns what was written.
func (w *Writer) Bytes() []byte { return w.message }

// Null writes a value that is null.
func (w *Writer) Null() { w.message = append(w.message, msgpcode.Nil) }

// Text writes a string, or a key of a map.
func (w *Writer) Text(text string) {
	switch length := len(text); {
	case length < 32:
		w.message = append(w.message, msgpcode.FixedStrLow|byte(length))
	case length < 1<<8:
		w.message = append(w.message, msgpcode.Str8, byte(length))
	default:
		w.length(msgpcode.Str8+1, length)
	}
	w.message = append(w.message, text...)
}

// List begins a list of so many values, which follow.
func (w *Writer) List(length int) {
	if length < 16 {
		w.message = append(w.message, msgpcode.FixedArrayLow|byte(length))
		return
	}
	w.length(msgpcode.Array16, length)
}

// Map begins a map or an object of so many entries: the key and the value of each follow.
func (w *Writer) Map(length int) {
	if length < 16 {
		w.message = append(w.message, msgpcode.FixedMapLow|byte(length))
		return
	}
	w.length(msgpcode.Map16, length)
}

// length writes a code that has a length of two bytes, or the next one, which has four.
func (w *Writer) length(code byte, length int) {
	if length < 1<<16 {
		w.message = binary.BigEndian.AppendUint16(append(w.message, code), uint16(length))
		return
	}
	w.message = binary.BigEndian.AppendUint32(append(w.message, code+1), uint32(length)) //nolint:gosec // no message has 4 GiB
}
