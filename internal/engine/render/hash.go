package render

import (
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"reflect"
	"strconv"
)

// hash follows Kalypso: version 1 of github.com/mitchellh/hashstructure, with FNV-1.
func hash(value any) (string, error) {
	sum, err := hashOf(reflect.ValueOf(value))
	return strconv.FormatUint(sum, 10), err
}

func hashOf(value reflect.Value) (uint64, error) {
	for value.Kind() == reflect.Interface || value.Kind() == reflect.Pointer {
		value = value.Elem()
	}
	if !value.IsValid() {
		return hashBytes(make([]byte, 8)), nil // null hashes like the integer 0
	}
	if number, ok := value.Interface().(json.Number); ok {
		return hashBytes([]byte(number)), nil
	}
	switch value.Kind() {
	case reflect.Int:
		return hashOf(reflect.ValueOf(value.Int()))
	case reflect.Uint:
		return hashOf(reflect.ValueOf(value.Uint()))
	case reflect.Bool, reflect.Int64, reflect.Uint64, reflect.Float64:
		encoded, err := binary.Append(nil, binary.LittleEndian, value.Interface())
		return hashBytes(encoded), err
	case reflect.String:
		return hashBytes([]byte(value.String())), nil
	case reflect.Slice, reflect.Array:
		var sum uint64
		for i := range value.Len() {
			element, err := hashOf(value.Index(i))
			if err != nil {
				return 0, err
			}
			sum = hashPair(sum, element)
		}
		return sum, nil
	case reflect.Map:
		var sum uint64
		for entries := value.MapRange(); entries.Next(); {
			key, err := hashOf(entries.Key())
			if err != nil {
				return 0, err
			}
			element, err := hashOf(entries.Value())
			if err != nil {
				return 0, err
			}
			sum ^= hashPair(key, element)
		}
		return sum, nil
	}
	return 0, problemf("hash: a value of type %s has no hash", value.Type())
}

func hashPair(a, b uint64) uint64 {
	return hashBytes(binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, a), b))
}

func hashBytes(bytes []byte) uint64 {
	sum := fnv.New64()
	_, _ = sum.Write(bytes)
	return sum.Sum64()
}
