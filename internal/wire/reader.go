package wire

import (
	"encoding/binary"
	"fmt"
)

// The codes of MessagePack: https://github.com/msgpack/msgpack/blob/master/spec.md.
const (
	codePositiveFixLast = 0x7f
	codeFixMap          = 0x80
	codeFixArray        = 0x90
	codeFixString       = 0xa0
	codeFixStringLast   = 0xbf
	codeNil             = 0xc0
	codeFalse           = 0xc2
	codeTrue            = 0xc3
	codeBytes8          = 0xc4
	codeBytes32         = 0xc6
	codeExtension8      = 0xc7
	codeExtension32     = 0xc9
	codeFloat32         = 0xca
	codeFloat64         = 0xcb
	codeUint8           = 0xcc
	codeUint64          = 0xcf
	codeInt8            = 0xd0
	codeInt64           = 0xd3
	codeFixExtension1   = 0xd4
	codeFixExtension16  = 0xd8
	codeString8         = 0xd9
	codeString32        = 0xdb
	codeArray16         = 0xdc
	codeArray32         = 0xdd
	codeMap16           = 0xde
	codeMap32           = 0xdf
	codeNegativeFix     = 0xe0
)

func isExtension(code byte) bool {
	return code >= codeFixExtension1 && code <= codeFixExtension16 || code >= codeExtension8 && code <= codeExtension32
}

// reader reads MessagePack. The texts that it returns are parts of the message, not copies.
type reader struct {
	rest string
}

func (r *reader) peek() (byte, error) {
	if r.rest == "" {
		return 0, fmt.Errorf("message ends early: %w", errForm)
	}
	return r.rest[0], nil
}

// take cuts off the next bytes.
func (r *reader) take(length int) (string, error) {
	if length > len(r.rest) {
		return "", fmt.Errorf("message ends early: %w", errForm)
	}
	taken := r.rest[:length]
	r.rest = r.rest[length:]
	return taken, nil
}

// unsigned reads a code and the unsigned number behind it, of 1, 2, 4 or 8 bytes by the code's last bits.
func (r *reader) unsigned() (uint64, error) {
	code, err := r.peek()
	if err != nil {
		return 0, err
	}
	return r.sized(1 << ((code - codeUint8) & 3))
}

// sized reads a code and a number of so many bytes behind it.
func (r *reader) sized(size int) (uint64, error) {
	taken, err := r.take(1 + size)
	if err != nil {
		return 0, err
	}
	var number [8]byte
	copy(number[8-size:], taken[1:])
	return binary.BigEndian.Uint64(number[:]), nil
}

// integer reads a signed number.
func (r *reader) integer() (int64, error) {
	code, err := r.peek()
	if err != nil {
		return 0, err
	}
	if code <= codePositiveFixLast || code >= codeNegativeFix {
		r.rest = r.rest[1:]
		return int64(int8(code)), nil
	}
	size := 1 << ((code - codeInt8) & 3)
	number, err := r.sized(size)
	shift := 64 - 8*size
	return int64(number<<shift) >> shift, err //nolint:gosec // the sign is carried down
}

// length reads a code and the length that it is about: in the code itself from fix on, or behind it, where
// codes from first on have a length of so many bytes, twice as many with each further code.
func (r *reader) length(what string, fix, fixMask, first, last byte, firstSize int) (int, error) {
	code, err := r.peek()
	if err != nil {
		return 0, err
	}
	var length uint64
	switch {
	case fix != 0 && code&^fixMask == fix:
		length = uint64(code & fixMask)
		r.rest = r.rest[1:]
	case code >= first && code <= last:
		if length, err = r.sized(firstSize << (code - first)); err != nil {
			return 0, err
		}
	default:
		return 0, fmt.Errorf("%s: %w", what, errForm)
	}
	if length > uint64(len(r.rest)) { // each element has a byte at least
		return 0, fmt.Errorf("%s is longer than the message: %w", what, errForm)
	}
	return int(length), nil //nolint:gosec // no longer than the message
}

func (r *reader) arrayLength() (int, error) {
	return r.length("array", codeFixArray, 0x0f, codeArray16, codeArray32, 2)
}

func (r *reader) mapLength() (int, error) {
	return r.length("map", codeFixMap, 0x0f, codeMap16, codeMap32, 2)
}

func (r *reader) text() (string, error) {
	length, err := r.length("text", codeFixString, 0x1f, codeString8, codeString32, 1)
	if err != nil {
		return "", err
	}
	return r.take(length)
}

func (r *reader) bytes() (string, error) {
	length, err := r.length("bytes", 0, 0, codeBytes8, codeBytes32, 1)
	if err != nil {
		return "", err
	}
	return r.take(length)
}

// skip passes over one value of any form.
func (r *reader) skip(depth int) error {
	code, err := r.peek()
	if err != nil {
		return err
	}
	elements := 0
	switch {
	case depth > maxDepth:
		return fmt.Errorf("more than %d levels: %w", maxDepth, errForm)
	case code&0xf0 == codeFixArray, code == codeArray16, code == codeArray32:
		elements, err = r.arrayLength()
	case code&0xf0 == codeFixMap, code == codeMap16, code == codeMap32:
		elements, err = r.mapLength()
		elements *= 2
	case code >= codeFixString && code <= codeFixStringLast, code >= codeString8 && code <= codeString32:
		_, err = r.text()
	case code >= codeBytes8 && code <= codeBytes32:
		_, err = r.bytes()
	case code >= codeExtension8 && code <= codeExtension32:
		var length int
		if length, err = r.length("extension", 0, 0, codeExtension8, codeExtension32, 1); err == nil {
			_, err = r.take(1 + length) // its type, and what it has
		}
	case code >= codeFixExtension1 && code <= codeFixExtension16:
		_, err = r.take(2 + 1<<(code-codeFixExtension1))
	case code == codeFloat32:
		_, err = r.take(5)
	case code == codeFloat64:
		_, err = r.take(9)
	case code >= codeUint8 && code <= codeUint64:
		_, err = r.unsigned()
	case code == 0xc1: // never used
		err = fmt.Errorf("code %x: %w", code, errForm)
	case code >= codeInt8 && code <= codeInt64:
		_, err = r.integer()
	default: // nil, bool and small numbers are their own code
		r.rest = r.rest[1:]
	}
	for range elements {
		if err := r.skip(depth + 1); err != nil {
			return err
		}
	}
	return err
}
