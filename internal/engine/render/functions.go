package render

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/template"
	"unicode/utf16"

	"github.com/Masterminds/sprig/v3"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/naming"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/reconciler"
)

// Reasons to refuse a function of sprig: equal input must give equal bytes everywhere.
const (
	readsEnvironment = "it reads the environment of the machine that renders"
	readsNetwork     = "it reads the network"
	readsClock       = "it reads the clock, or the time zone of the machine that renders"
	differs          = "its result differs from run to run"
	differsBySystem  = "its result differs between operating systems; use base, clean, dir, ext or isAbs"
	hidesNothing     = "its result would be committed unencrypted"
)

var refusedFunctions = map[string]string{
	"env": readsEnvironment, "expandenv": readsEnvironment,
	"getHostByName": readsNetwork,

	"ago": readsClock, "date": readsClock, "date_in_zone": readsClock, "date_modify": readsClock,
	"dateInZone": readsClock, "dateModify": readsClock, "htmlDate": readsClock, "htmlDateInZone": readsClock,
	"must_date_modify": readsClock, "mustDateModify": readsClock, "mustToDate": readsClock, "now": readsClock,
	"toDate": readsClock, "unixEpoch": readsClock,

	"randAlphaNum": differs, "randAlpha": differs, "randAscii": differs, "randNumeric": differs, "randBytes": differs,
	"randInt": differs, "shuffle": differs, "uuidv4": differs, "bcrypt": differs, "htpasswd": differs,
	"genPrivateKey": differs, "genCA": differs, "genCAWithKey": differs, "genSelfSignedCert": differs,
	"genSelfSignedCertWithKey": differs, "genSignedCert": differs, "genSignedCertWithKey": differs, "encryptAES": differs,

	"osBase": differsBySystem, "osClean": differsBySystem, "osDir": differsBySystem, "osExt": differsBySystem,
	"osIsAbs": differsBySystem,

	"derivePassword": hidesNothing,
}

func unknownFunction(name string) string {
	if reason, ok := refusedFunctions[name]; ok {
		return fmt.Sprintf("function %q is not for templates: %s", name, reason)
	}
	return fmt.Sprintf("there is no function %q", name) + fleet.DidYouMean(name, slices.Sorted(maps.Keys(functions())))
}

// functions returns sprig's functions. Our own replace functions that hide errors, depend on the order of a map, or return
// unbounded results.
var functions = sync.OnceValue(func() template.FuncMap {
	all := sprig.GenericFuncMap()
	for name := range refusedFunctions {
		delete(all, name)
	}
	maps.Copy(all, map[string]any{
		"fromYaml":     fromYAML,
		"hash":         hash,
		"shorten":      shorten,
		"withScheme":   reconciler.WithScheme,
		"unquote":      unquote,
		"toEnv":        toEnv,
		"toProperties": toProperties,

		// Placeholders: a runner has its own.
		"toYaml":    func(any) (string, error) { return "", nil },
		"stringify": func(any) (string, error) { return "", nil },
		"tpl":       func(string, any) (string, error) { return "", nil },

		"toJson": all["mustToJson"], "toPrettyJson": all["mustToPrettyJson"], "toRawJson": all["mustToRawJson"],
		"fromJson": fromJSON, "mustFromJson": fromJSON,

		"keys":     dictKeys,
		"values":   dictValues,
		"dig":      dig,
		"quote":    joinQuoted(strconv.Quote), // for Go, JSON and YAML
		"squote":   joinQuoted(func(text string) string { return "'" + text + "'" }),
		"toString": toString,
	})
	maps.Copy(all, limitedFunctions(all))
	return all
})

func shorten(longest int, name string) (string, error) {
	if longest < naming.Shortest {
		return "", problemf("shorten: a name cannot be shortened to %d characters; the least is %d", longest, naming.Shortest)
	}
	return naming.Shorten(name, longest), nil
}

func toRawJSON(value any) (string, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return strings.TrimSuffix(buffer.String(), "\n"), err
}

func fromJSON(text string) (any, error) {
	value, err := fleet.ParseJSON(text)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, problemf("fromJson: the text ends too early")
	}
	if err != nil {
		return nil, problemf("fromJson: %s", err)
	}
	return natural(value), nil
}

func fromYAML(text string) (any, error) {
	value, err := fleet.ParseLooseYAML(text)
	if err != nil {
		message := strings.TrimPrefix(err.Error(), "yaml: ")
		if strings.Contains(message, "anchor") { // the message may quote a value
			message = `a value that starts with "*" must be in quotes`
		}
		return nil, problemf("fromYaml: %s", message)
	}
	return natural(value), nil
}

func dictKeys(dicts ...map[string]any) []string {
	names := []string{}
	for _, dict := range dicts {
		names = append(names, slices.Sorted(maps.Keys(dict))...)
	}
	return names
}

func dictValues(dict map[string]any) []any {
	all := make([]any, 0, len(dict))
	for _, key := range slices.Sorted(maps.Keys(dict)) {
		all = append(all, dict[key])
	}
	return all
}

// dig returns a value of nested maps, or the default: dig "a" "b" "default" map.
func dig(arguments ...any) (any, error) {
	if len(arguments) < 3 {
		return nil, problemf("dig needs keys, a default and a map")
	}
	value := arguments[len(arguments)-1]
	missing := arguments[len(arguments)-2]
	for _, step := range arguments[:len(arguments)-2] {
		key, ok := step.(string)
		if !ok {
			return nil, problemf("dig: a key is not a string")
		}
		switch object := value.(type) {
		case nil:
			return missing, nil
		case unknownRepo:
			return nil, ErrUnknown
		case map[string]any:
			value, ok = object[key]
			if !ok {
				return missing, nil
			}
		default:
			return nil, problemf("dig: what should hold %q is not a map", key)
		}
	}
	return value, nil
}

// joinQuoted returns a function that quotes values and separates them by spaces.
func joinQuoted(quote func(text string) string) func(values ...any) string {
	return func(values ...any) string {
		quoted := make([]string, len(values))
		for i, value := range values {
			quoted[i] = quote(toString(value))
		}
		return strings.Join(quoted, " ")
	}
}

func toString(value any) string {
	if text, ok := scalarText(value); ok {
		return text
	}
	switch value := value.(type) {
	case []byte:
		return string(value)
	case error:
		return value.Error()
	}
	return fmt.Sprint(value)
}

var (
	variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	plainInEnv   = regexp.MustCompile(`^[A-Za-z0-9_./:@%+,=-]*$`)
)

// toEnv writes sorted lines of NAME=value, quoted for shells and .env parsers. Objects and lists are JSON.
func toEnv(values map[string]any) (string, error) {
	return toLines(values, func(key, text string) (string, error) {
		if !variableName.MatchString(key) {
			return "", problemf("key %q cannot be the name of an environment variable: use letters, digits and _", key)
		}
		if strings.ContainsRune(text, 0) {
			return "", problemf("the value of key %q holds a null character, which an environment variable cannot", key)
		}
		if plainInEnv.MatchString(text) {
			return key + "=" + text, nil
		}
		return key + "='" + strings.ReplaceAll(text, "'", `'\''`) + "'", nil
	})
}

// toProperties writes for java.util.Properties. Objects and lists are JSON.
func toProperties(values map[string]any) (string, error) {
	return toLines(values, func(key, text string) (string, error) {
		return escapeProperty(key, true) + "=" + escapeProperty(text, false), nil
	})
}

func toLines(values map[string]any, line func(key, text string) (string, error)) (string, error) {
	lines := make([]string, 0, len(values))
	for _, key := range slices.Sorted(maps.Keys(values)) {
		text, isScalar := scalarText(values[key])
		if !isScalar {
			var err error
			if text, err = toRawJSON(values[key]); err != nil {
				return "", err
			}
		}
		written, err := line(key, text)
		if err != nil {
			return "", err
		}
		lines = append(lines, written)
	}
	return strings.Join(lines, "\n"), nil
}

// escapeProperty escapes non-ASCII characters, since programs may read the file as Latin-1.
func escapeProperty(text string, isKey bool) string {
	var escaped strings.Builder
	for i, r := range text {
		switch {
		case r == '\n':
			escaped.WriteString(`\n`)
		case r == '\r':
			escaped.WriteString(`\r`)
		case r == '\t':
			escaped.WriteString(`\t`)
		case r == '\\', isKey && strings.ContainsRune("=:#! ", r), !isKey && i == 0 && r == ' ':
			escaped.WriteRune('\\')
			escaped.WriteRune(r)
		case r < ' ' || r > '~':
			for _, unit := range utf16.Encode([]rune{r}) {
				fmt.Fprintf(&escaped, `\u%04x`, unit)
			}
		default:
			escaped.WriteRune(r)
		}
	}
	return escaped.String()
}

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
