package wire

import (
	"bytes"
	"fmt"

	"github.com/vmihailenco/msgpack/v5"
	"github.com/vmihailenco/msgpack/v5/msgpcode"
)

type reader struct {
	*msgpack.Decoder
	rest *bytes.Reader
}

func newReader(message []byte) *reader {
	rest := bytes.NewReader(message)
	return &reader{msgpack.NewDecoder(rest), rest}
}

func (r *reader) checkEnd() error {
	if r.rest.Len() > 0 {
		return fmt.Errorf("%d bytes after the value: %w", r.rest.Len(), errForm)
	}
	return nil
}

func (r *reader) arrayLength() (int, error) { return r.checkLength(r.DecodeArrayLen()) }

func (r *reader) mapLength() (int, error) { return r.checkLength(r.DecodeMapLen()) }

// checkLength refuses more elements than bytes remain.
func (r *reader) checkLength(length int, err error) (int, error) {
	if err == nil && (length < 0 || length > r.rest.Len()) {
		err = fmt.Errorf("length %d: %w", length, errForm)
	}
	return length, err
}

func (r *reader) text() (string, error) {
	if code, err := r.PeekCode(); err != nil || !msgpcode.IsString(code) {
		return "", fmt.Errorf("text: %w", errForm)
	}
	return r.DecodeString()
}

func isArray(code byte) bool {
	return msgpcode.IsFixedArray(code) || code == msgpcode.Array16 || code == msgpcode.Array32
}

func isMap(code byte) bool {
	return msgpcode.IsFixedMap(code) || code == msgpcode.Map16 || code == msgpcode.Map32
}

// isSigned reports the code of a signed number. Small numbers are their own code.
func isSigned(code byte) bool {
	return msgpcode.IsFixedNum(code) || code >= msgpcode.Int8 && code <= msgpcode.Int64
}

func isUnsigned(code byte) bool { return code >= msgpcode.Uint8 && code <= msgpcode.Uint64 }
