package wire_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
	"github.com/flotilla/terraform-provider-flotilla/internal/provider/wire"
	"github.com/flotilla/terraform-provider-flotilla/internal/testing/acceptancetest"
)

func TestRandomValuesAreReadAsTheFrameworkReadsThem(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for i := range acceptancetest.Count(1000, 3000) {
		value := randomValue(random, randomType(random, 4))
		message := messageOf(t, value)
		got, err := wire.Plain(message)
		if err != nil && (value.IsNull() || !value.IsKnown()) {
			continue // a null or unknown value may be left to the framework
		}
		if err != nil {
			t.Fatalf("value %d, %s: %s", i, value, err)
		}
		if want := plain(t, value); !reflect.DeepEqual(got, want) {
			t.Fatalf("value %d: got %#v, want %#v", i, got, want)
		}
	}
}

func TestEveryTruncatedMessageIsAnError(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 100 {
		message := messageOf(t, randomValue(random, tftypes.Tuple{ElementTypes: []tftypes.Type{randomType(random, 3), tftypes.Number}}))
		for length := 0; length < len(message); length += 1 + random.IntN(1+len(message)/100) {
			if value, err := wire.Plain(message[:length]); err == nil {
				t.Fatalf("the first %d bytes of %x are %#v", length, message, value)
			}
		}
		if value, err := wire.Plain(append(message, 0xc0)); err == nil {
			t.Fatalf("with a byte more, %x is %#v", message, value)
		}
	}
}

func TestMalformedMessagesAreErrors(t *testing.T) {
	typed := func(typ, value string) string {
		return "\x92\xc4" + string(rune(len(typ))) + typ + value
	}
	for name, message := range map[string]string{
		"nothing":                      "",
		"null":                         "\xc0",
		"unknown":                      "\xd4\x00\x00",
		"three elements":               "\x93\xc4\x08\"string\"\xa1a\xa1b",
		"type that is text":            "\x92\xa8\"string\"\xa1a",
		"unknown type":                 typed(`"text"`, "\xa1a"),
		"unknown compound type":        typed(`["array","string"]`, "\x90"),
		"two types":                    typed(`"string""string"`, "\xa1a"),
		"incomplete type":              typed(`["list","stri`, "\x90"),
		"type with optional attribute": typed(`["object",{"a":"string"},["a"]]`, "\x81\xa1a\xa1b"),
		"type with a bad escape":       typed(`["object",{"\x":"string"}]`, "\x81\xa1a\xa1b"),
		"type without a comma":         typed(`["tuple",["string""string"]]`, "\x92\xa1a\xa1b"),
		"bool for text":                typed(`"string"`, "\xc2"),
		"text for bool":                typed(`"bool"`, "\xa1a"),
		"list for number":              typed(`"number"`, "\x90"),
		"text for number":              typed(`"number"`, "\xa3Inf"),
		"not a number":                 typed(`"number"`, "\xcb\x7f\xf8\x00\x00\x00\x00\x00\x01"),
		"map for list":                 typed(`["list","string"]`, "\x80"),
		"list for map":                 typed(`["map","string"]`, "\x90"),
		"short tuple":                  typed(`["tuple",["string","string"]]`, "\x91\xa1a"),
		"object without an attribute":  typed(`["object",{"a":"string","b":"string"}]`, "\x81\xa1a\xa1a"),
		"object of other attributes":   typed(`["object",{"a":"string"}]`, "\x81\xa1b\xa1a"),
		"duplicate key":                typed(`["map","string"]`, "\x82\xa1a\xa1a\xa1a\xa1b"),
		"number for key":               typed(`["map","string"]`, "\x81\x01\xa1a"),
		"value of any type":            typed(`["list","dynamic"]`, "\x91\xa1a"),
		"list longer than the message": typed(`["list","string"]`, "\xdd\xff\xff\xff\xff"),
		"deep type": "\x92\xc6\x00\x00\x75\x38" + strings.Repeat(`["list",`, 3000) + strings.Repeat(" ", 6000) +
			"\x90",
	} {
		if value, err := wire.Plain([]byte(message)); err == nil {
			t.Errorf("%s: got %#v, want an error", name, value)
		}
	}
}

func TestDeepValuesAreRefused(t *testing.T) {
	const levels = 2000
	typ := strings.Repeat(`["list",`, levels) + `"string"` + strings.Repeat("]", levels)
	message := append([]byte{0x92, 0xc5, byte(len(typ) >> 8), byte(len(typ) & 0xff)}, typ...)
	if _, err := wire.Plain(append(message, strings.Repeat("\x91", levels)+"\xa1a"...)); err == nil {
		t.Error("2,000 levels were read")
	}
}

func TestRefinedUnknownValuesAreUnknown(t *testing.T) {
	refined := []byte("\x92\xc4\x10[\"map\",\"string\"]\x82\xa1a\xc7\x03\x0c\x81\x01\xc2\xa1b\xd4\x00\x00")
	got, err := wire.Plain(refined)
	if want := (map[string]any{"a": fleet.Unknown{}, "b": fleet.Unknown{}}); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %#v, want %#v: %v", got, want, err)
	}
}

func TestAnAttributeIsReplacedAndAllOthersStay(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for range acceptancetest.Count(15, 60) {
		attributes := map[string]tftypes.Type{
			"before": randomType(random, 3),
			"large":  tftypes.List{ElementType: tftypes.String},
			"zz":     randomType(random, 3),
		}
		values := map[string]tftypes.Value{}
		for name, typ := range attributes {
			values[name] = randomValue(random, typ)
		}
		typ := tftypes.Object{AttributeTypes: attributes}
		object, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, values))
		if err != nil {
			t.Fatal(err)
		}
		w := wire.NewWriter()
		w.Value(types.ListValueMust(types.StringType, []attr.Value{types.StringValue("a"), types.StringNull()}))
		object.MsgPack, err = wire.Replace(object.MsgPack, "large", w.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		got, err := object.Unmarshal(typ)
		if err != nil {
			t.Fatal(err)
		}
		values["large"] = tftypes.NewValue(
			attributes["large"],
			[]tftypes.Value{tftypes.NewValue(tftypes.String, "a"), tftypes.NewValue(tftypes.String, nil)},
		)
		if want := tftypes.NewValue(typ, values); !got.Equal(want) {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
}

// Terraform accepts numbers as text, as in states.
func TestNumbersAreTexts(t *testing.T) {
	for _, number := range []string{"0", "1", "-1", "127", "128", "-33", "65536", "18446744073709551615", "-9223372036854775808", "1.5", "0.1", "3.14159265358979323846264338327950288", "1e30"} {
		exact, _, err := big.ParseFloat(number, 10, 512, big.ToNearestEven)
		if err != nil {
			t.Fatal(err)
		}
		object := tftypes.Object{
			AttributeTypes: map[string]tftypes.Type{
				"a": tftypes.DynamicPseudoType,
				"b": tftypes.List{ElementType: tftypes.Number},
				"c": tftypes.Bool,
			},
		}
		value := tftypes.NewValue(object, map[string]tftypes.Value{
			"a": tftypes.NewValue(tftypes.Number, exact), "c": tftypes.NewValue(tftypes.Bool, true),
			"b": tftypes.NewValue(
				tftypes.List{ElementType: tftypes.Number},
				[]tftypes.Value{tftypes.NewValue(tftypes.Number, exact), tftypes.NewValue(tftypes.Number, nil)},
			),
		})
		message, err := wire.NumbersAsText(messageOf(t, value))
		if err != nil {
			t.Fatal(err)
		}
		read, err := (tfprotov6.DynamicValue{MsgPack: message}).Unmarshal(tftypes.DynamicPseudoType)
		if err != nil || !read.Equal(value) {
			t.Errorf("%s is read as %v: %v", number, read, err)
		}
	}
}

func TestReplaceOfAMissingAttributeIsAnError(t *testing.T) {
	for _, object := range []string{"", "\xc0", "\x80", "\x81\xa1a\xc0", "\x82\xa1a\xc0", "\x81\xa1a", "\x81\x01\xc0", "\x81\xa1a\xc1"} {
		if replaced, err := wire.Replace([]byte(object), "large", []byte{0xc0}); err == nil {
			t.Errorf("%x became %x", object, replaced)
		}
	}
}

func TestLengthsOfEverySizeAreWritten(t *testing.T) {
	typ := tftypes.Map{ElementType: tftypes.List{ElementType: tftypes.String}}
	for _, length := range []int{0, 15, 16, 31, 32, 255, 256, 65535, 65536} {
		long := strings.Repeat("x", length)
		w := wire.NewWriter()
		w.Map(1 + length)
		w.Text(long)
		w.List(length)
		for range length {
			w.Text("")
		}
		for i := range length {
			w.Text(fmt.Sprint(i))
			w.Value(types.ListNull(types.StringType))
		}
		value, err := (tfprotov6.DynamicValue{MsgPack: w.Bytes()}).Unmarshal(typ)
		if err != nil {
			t.Fatalf("%d: %s", length, err)
		}
		got := map[string]tftypes.Value{}
		if err := value.As(&got); err != nil || len(got) != 1+length {
			t.Errorf("%d: %d entries, %v", length, len(got), err)
		}
		var list []tftypes.Value
		if err := got[long].As(&list); err != nil || len(list) != length {
			t.Errorf("%d: %d elements, %v", length, len(list), err)
		}
	}
}

func FuzzPlain(f *testing.F) {
	random := rand.New(rand.NewPCG(7, 8))
	for range 50 {
		f.Add(messageOf(f, randomValue(random, randomType(random, 3))))
	}
	f.Fuzz(func(t *testing.T, message []byte) {
		got, err := wire.Plain(message)
		if err != nil {
			return
		}
		value, err := (tfprotov6.DynamicValue{MsgPack: message}).Unmarshal(tftypes.DynamicPseudoType)
		if err != nil {
			t.Fatalf("Terraform's own reader refuses the message: %s", err)
		}
		if want := plain(t, value); !reflect.DeepEqual(got, want) {
			t.Fatalf("got %#v, want %#v", got, want)
		}
	})
}

func FuzzReplace(f *testing.F) {
	f.Add([]byte("\x81\xa1a\xc0"), "a")
	f.Add([]byte("\x82\xa1a\x93\xca\x00\x00\x00\x00\xc7\x01\x00\x00\xd1\x01\x01\xa1b\xc4\x01a"), "b")
	f.Fuzz(func(t *testing.T, object []byte, name string) {
		replaced, err := wire.Replace(object, name, []byte{0xc3})
		if err != nil {
			return
		}
		if again, err := wire.Replace(replaced, name, []byte{0xc3}); err != nil || string(again) != string(replaced) {
			t.Errorf("%x became %x, then %x, %v", object, replaced, again, err)
		}
	})
}

func messageOf(t testing.TB, value tftypes.Value) []byte {
	t.Helper()
	message, err := tfprotov6.NewDynamicValue(tftypes.DynamicPseudoType, value)
	if err != nil {
		t.Fatal(err)
	}
	return message.MsgPack
}

// plain returns a value in the form of package fleet.
func plain(t testing.TB, value tftypes.Value) any {
	t.Helper()
	switch {
	case !value.IsKnown():
		return fleet.Unknown{}
	case value.IsNull():
		return nil
	}
	var text string
	var truth bool
	var number *big.Float
	var list []tftypes.Value
	var object map[string]tftypes.Value
	switch {
	case value.As(&text) == nil:
		return text
	case value.As(&truth) == nil:
		return truth
	case value.As(&number) == nil:
		return fleet.FormatNumber(number)
	case value.As(&list) == nil:
		elements := make([]any, len(list))
		for i := range list {
			elements[i] = plain(t, list[i])
		}
		return elements
	case value.As(&object) == nil:
		attributes := make(map[string]any, len(object))
		for name := range object {
			attributes[name] = plain(t, object[name])
		}
		return attributes
	}
	t.Fatalf("%s is not a value of HCL", value)
	return nil
}

func randomType(random *rand.Rand, depth int) tftypes.Type {
	kinds := 9
	if depth == 0 {
		kinds = 4
	}
	switch random.IntN(kinds) {
	case 0:
		return tftypes.Number
	case 1:
		return tftypes.Bool
	case 2, 3:
		return tftypes.String
	case 4:
		return tftypes.List{ElementType: randomType(random, depth-1)}
	case 5:
		return tftypes.Set{ElementType: randomType(random, depth-1)}
	case 6:
		return tftypes.Map{ElementType: randomType(random, depth-1)}
	case 7:
		elements := make([]tftypes.Type, random.IntN(4))
		for i := range elements {
			elements[i] = randomType(random, depth-1)
		}
		return tftypes.Tuple{ElementTypes: elements}
	}
	attributes := map[string]tftypes.Type{}
	for range random.IntN(5) {
		attributes[randomText(random)] = randomType(random, depth-1)
	}
	if random.IntN(3) == 0 {
		attributes["null"] = tftypes.DynamicPseudoType
	}
	return tftypes.Object{AttributeTypes: attributes}
}

func randomText(random *rand.Rand) string {
	texts := []string{"", "a", "name", "größe", "\"quoted\"", "<&>", "back\\slash", "line\nend", "\u2028", "日本", strings.Repeat("long", 100)}
	return texts[random.IntN(len(texts))] + fmt.Sprint(random.IntN(50))
}

func randomNumber(random *rand.Rand) *big.Float {
	texts := []string{"0", "-1", "127", "128", "255", "256", "-32", "-33", "-128", "-129", "65536", "-70000", "4294967296", "-5000000000",
		"9223372036854775807", "18446744073709551615", "1.5", "0.1", "-2.25", "1e40", "1e-40", "1e3000", "3.141592653589793238462643383279"}
	number, _, _ := big.ParseFloat(texts[random.IntN(len(texts))], 10, 512, big.ToNearestEven)
	return number
}

func randomValue(random *rand.Rand, typ tftypes.Type) tftypes.Value {
	switch {
	case typ.Is(tftypes.DynamicPseudoType) || random.IntN(12) == 0:
		return tftypes.NewValue(typ, nil)
	case random.IntN(12) == 0:
		return tftypes.NewValue(typ, tftypes.UnknownValue)
	}
	randomValues := func(element tftypes.Type) []tftypes.Value {
		values := make([]tftypes.Value, random.IntN(4)*random.IntN(8))
		for i := range values {
			values[i] = randomValue(random, element)
		}
		return values
	}
	switch typ := typ.(type) {
	case tftypes.List:
		return tftypes.NewValue(typ, randomValues(typ.ElementType))
	case tftypes.Set:
		return tftypes.NewValue(typ, randomValues(typ.ElementType))
	case tftypes.Map:
		values := map[string]tftypes.Value{}
		for _, value := range randomValues(typ.ElementType) {
			values[randomText(random)] = value
		}
		return tftypes.NewValue(typ, values)
	case tftypes.Tuple:
		values := make([]tftypes.Value, len(typ.ElementTypes))
		for i := range values {
			values[i] = randomValue(random, typ.ElementTypes[i])
		}
		return tftypes.NewValue(typ, values)
	case tftypes.Object:
		values := map[string]tftypes.Value{}
		for name := range typ.AttributeTypes {
			values[name] = randomValue(random, typ.AttributeTypes[name])
		}
		return tftypes.NewValue(typ, values)
	}
	switch {
	case typ.Is(tftypes.Number):
		return tftypes.NewValue(typ, randomNumber(random))
	case typ.Is(tftypes.Bool):
		return tftypes.NewValue(typ, random.IntN(2) == 0)
	}
	return tftypes.NewValue(typ, randomText(random))
}
