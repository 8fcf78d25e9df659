package constraint_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flotilla/terraform-provider-flotilla/internal/engine/constraint"
	"github.com/flotilla/terraform-provider-flotilla/internal/engine/fleet"
)

// group is one row of the guide's table of functions.
type group struct {
	name, link  string
	functions   []string
	expressions []string // true, and together they call each function
}

const (
	celSpec    = "https://github.com/google/cel-spec/blob/master/doc/langdef.md"
	celStrings = "https://pkg.go.dev/github.com/google/cel-go/ext#Strings"
	celLists   = "https://pkg.go.dev/github.com/google/cel-go/ext#Lists"
	celSets    = "https://pkg.go.dev/github.com/google/cel-go/ext#Sets"
	celTwoVars = "https://pkg.go.dev/github.com/google/cel-go/ext#TwoVarComprehensions"
	celOption  = "https://pkg.go.dev/github.com/google/cel-go/cel#OptionalTypes"
	kubernetes = "https://kubernetes.io/docs/reference/using-api/cel/"
)

// groups lists the functions that the guide promises.
var groups = []group{
	{
		"Standard macros and conversions", celSpec + "#list-of-standard-definitions",
		[]string{
			"all",
			"bool",
			"bytes",
			"double",
			"duration",
			"dyn",
			"exists",
			"existsOne",
			"exists_one",
			"filter",
			"has",
			"int",
			"map",
			"size",
			"string",
			"timestamp",
			"type",
			"uint",
		},
		[]string{
			`[1, 2].all(x, x > 0) && [1, 2].exists(x, x == 2) && [1, 2].exists_one(x, x == 2) && !{"a": 1}.exists_one(k, k == "b")`,
			`{"a": 1, "b": 2}.existsOne(k, v, k == "a" && v == 1)`,
			`[1, 2, 3].filter(x, x > 1).map(x, x * 2) == [4, 6] && [1, 2].map(x, x > 1, x + 1) == [3]`,
			`has(target.name) && size("äb") == 2 && [1].size() == 1 && {"a": 1}.size() == 1`,
			`int("7") == 7 && int(7.9) == 7 && uint(7) == 7u && double("0.5") == 0.5 && string(7) == "7" && bool("true") && bytes("a") == b"a"`,
			`dyn(1) == 1.0 && type(1) == int && type("a") == string && type(target.name) == string && 1 < 1.5`,
			`duration("90m") == duration("1h30m") && timestamp("2026-11-22T00:00:00Z") + duration("24h") == timestamp("2026-11-23T00:00:00Z")`,
			`"b" in ["a", "b"] && "a" in {"a": 1} && !(3 in [1, 2])`,
			`7 / 2 == 3 && 7 % 2 == 1 && -7 + 2 == -5 && 2 * 3 - 1 == 5 && 1 != 2 && 2 >= 2 && 2 <= 2 && (true ? 1 : 2) == 1`,
			`[1, 2][0] == 1 && {"a": 1}["a"] == 1 && {"a": 1}.a == 1 && [1] + [2] == [1, 2] && "a" + "b" == "ab"`,
		},
	},
	{
		"Dates and times", celSpec + "#list-of-standard-definitions",
		[]string{
			"getDate",
			"getDayOfMonth",
			"getDayOfWeek",
			"getDayOfYear",
			"getFullYear",
			"getHours",
			"getMilliseconds",
			"getMinutes",
			"getMonth",
			"getSeconds",
		},
		[]string{
			`timestamp("2026-11-22T10:20:30.4Z").getFullYear() == 2026 && timestamp("2026-11-22T10:20:30.4Z").getMonth() == 10`,
			`timestamp("2026-11-22T10:20:30.4Z").getDate() == 22 && timestamp("2026-11-22T10:20:30.4Z").getDayOfMonth() == 21 && timestamp("2026-11-22T10:20:30.4Z").getDayOfWeek() == 0 && timestamp("2026-11-22T10:20:30.4Z").getDayOfYear() == 325`,
			`timestamp("2026-11-22T10:20:30.4Z").getHours() == 10 && timestamp("2026-11-22T10:20:30.4Z").getMinutes() == 20 && timestamp("2026-11-22T10:20:30.4Z").getSeconds() == 30 && timestamp("2026-11-22T10:20:30.4Z").getMilliseconds() == 400`,
			`duration("90m").getHours() == 1 && duration("90m").getMinutes() == 90`,
		},
	},
	{
		"Strings", celStrings,
		[]string{
			"charAt", "contains", "endsWith", "format", "indexOf", "join", "lastIndexOf", "lowerAscii", "matches", "replace", "split", "startsWith",
			"strings.quote", "substring", "trim", "upperAscii",
		},
		[]string{
			`"abc".contains("b") && "abc".startsWith("a") && "abc".endsWith("c") && "abc".matches("^[a-c]+$") && matches("abc", "b")`,
			`"abc".charAt(1) == "b" && "abcb".indexOf("b") == 1 && "abcb".lastIndexOf("b") == 3 && "abcb".indexOf("b", 2) == 3`,
			`"AbC".lowerAscii() == "abc" && "AbC".upperAscii() == "ABC" && " a ".trim() == "a" && "abc".substring(1) == "bc" && "abc".substring(0, 1) == "a"`,
			`"a-b".replace("-", "_") == "a_b" && "a-b-c".replace("-", "_", 1) == "a_b-c"`,
			`"a,b".split(",") == ["a", "b"] && "a,b,c".split(",", 2) == ["a", "b,c"] && ["a", "b"].join("-") == "a-b" && ["a", "b"].join() == "ab"`,
			`"%s has %d of %.1f".format(["a", 1, 2.5]) == "a has 1 of 2.5" && strings.quote("a\"b") == "\"a\\\"b\""`,
		},
	},
	{
		"Lists", celLists,
		[]string{
			"distinct", "first", "flatten", "includes", "indexOf", "isSorted", "last", "lastIndexOf", "lists.range", "max", "min", "reverse", "slice", "sort", "sortBy", "sum",
		},
		[]string{
			`[3, 1, 2].sort() == [1, 2, 3] && ["bb", "a"].sortBy(s, s.size()) == ["a", "bb"] && [1, 2].isSorted() && ![2, 1].isSorted()`,
			`[1, 2, 3].sum() == 6 && [1, 2, 3].max() == 3 && [1, 2, 3].min() == 1 && [1, 2, 1].indexOf(1) == 0 && [1, 2, 1].lastIndexOf(1) == 2`,
			`[1, 1, 2].distinct() == [1, 2] && [[1], [2, 3]].flatten() == [1, 2, 3] && [1, 2].reverse() == [2, 1] && [1, 2, 3].slice(1, 3) == [2, 3]`,
			`lists.range(3) == [0, 1, 2] && [1, 2].first().value() == 1 && [1, 2].last().orValue(0) == 2 && [1, 2].includes(2)`,
		},
	},
	{
		"Sets", celSets,
		[]string{"sets.contains", "sets.equivalent", "sets.intersects"},
		[]string{`sets.contains([1, 2, 3], [2, 3]) && sets.equivalent([1, 2], [2, 1, 1]) && sets.intersects([1, 2], [2, 3])`},
	},
	{
		"Comprehensions of two variables", celTwoVars,
		[]string{"transformList", "transformMap", "transformMapEntry"},
		[]string{
			`{"a": 1}.all(k, v, k == "a" && v == 1) && ["a", "b"].exists(i, v, i == 1 && v == "b")`,
			`["a", "b"].transformList(i, v, string(i) + v) == ["0a", "1b"] && {"a": 1}.transformMap(k, v, v + 1) == {"a": 2} && {"a": "b"}.transformMapEntry(k, v, {v: k}) == {"b": "a"}`,
		},
	},
	{
		"Optional values", celOption,
		[]string{
			"hasValue",
			"optFlatMap",
			"optMap",
			"optional.none",
			"optional.of",
			"optional.ofNonZeroValue",
			"optional.unwrap",
			"or",
			"orValue",
			"unwrapOpt",
			"value",
		},
		[]string{
			`{"a": 1}[?"b"].orValue(2) == 2 && {"a": 1}.?a.hasValue() && {"a": 1}.?a.value() == 1 && [1][?3].or(optional.of(4)).value() == 4`,
			`optional.none().orValue("x") == "x" && !optional.ofNonZeroValue("").hasValue() && {"a": 1}.?a.optMap(v, v + 1).value() == 2 && {"a": {"b": 1}}.?a.optFlatMap(v, v.?b).value() == 1`,
			`optional.unwrap([optional.of(1), optional.none()]) == [1] && [optional.of(1), optional.none()].unwrapOpt() == [1] && [?{"a": 1}.?b, 2] == [2]`,
		},
	},
	{
		"Regular expressions", kubernetes + "#kubernetes-regex-library",
		[]string{"find", "findAll"},
		[]string{`"a1b22".find("[0-9]+") == "1" && "a1b22".findAll("[0-9]+") == ["1", "22"] && "a1b22".findAll("[0-9]+", 1) == ["1"]`},
	},
	{
		"URLs", kubernetes + "#kubernetes-url-library",
		[]string{"getEscapedPath", "getHost", "getHostname", "getPort", "getQuery", "getScheme", "isURL", "url"},
		[]string{
			`isURL("https://a.example:8443/b") && !isURL("../b") && url("https://a.example:8443/b?c=d").getScheme() == "https"`,
			`url("https://a.example:8443/b?c=d").getHost() == "a.example:8443" && url("https://a.example:8443/b?c=d").getHostname() == "a.example" && url("https://a.example:8443/b?c=d").getPort() == "8443"`,
			`url("https://a.example/b%20c?d=e").getEscapedPath() == "/b%20c" && url("https://a.example/b?c=d").getQuery() == {"c": ["d"]}`,
		},
	},
	{
		"IP addresses and networks", kubernetes + "#kubernetes-ip-address-library",
		[]string{
			"cidr", "containsCIDR", "containsIP", "family", "ip", "ip.isCanonical", "isCIDR", "isGlobalUnicast", "isIP", "isLinkLocalMulticast", "isLinkLocalUnicast",
			"isLoopback", "isUnspecified", "masked", "prefixLength",
		},
		[]string{
			`isIP("10.0.0.1") && ip("10.0.0.1").family() == 4 && ip("::1").isLoopback() && ip("0.0.0.0").isUnspecified() && ip("8.8.8.8").isGlobalUnicast() && ip.isCanonical("::1")`,
			`ip("169.254.0.1").isLinkLocalUnicast() && ip("224.0.0.1").isLinkLocalMulticast() && string(ip("10.0.0.1")) == "10.0.0.1"`,
			`isCIDR("10.0.0.0/8") && cidr("10.0.0.0/8").containsIP("10.1.2.3") && cidr("10.0.0.0/8").containsCIDR("10.1.0.0/16") && cidr("10.1.0.0/8").masked() == cidr("10.0.0.0/8") && cidr("10.0.0.0/8").prefixLength() == 8`,
			`cidr("10.0.0.0/8").ip() == ip("10.0.0.0")`,
		},
	},
	{
		"Quantities", kubernetes + "#kubernetes-quantity-library",
		[]string{
			"add",
			"asApproximateFloat",
			"asInteger",
			"compareTo",
			"isGreaterThan",
			"isInteger",
			"isLessThan",
			"isQuantity",
			"quantity",
			"sign",
			"sub",
		},
		[]string{
			`isQuantity("500m") && !isQuantity("5 m") && quantity("2Gi").isGreaterThan(quantity("1G")) && quantity("1Mi").isLessThan(quantity("2Mi")) && quantity("1k").compareTo(quantity("1000")) == 0`,
			`quantity("1k").asInteger() == 1000 && quantity("500m").asApproximateFloat() == 0.5 && quantity("1").isInteger() && sign(quantity("-1")) == -1`,
			`quantity("1").add(quantity("2")) == quantity("3") && quantity("3").sub(1) == quantity("2")`,
		},
	},
	{
		"Semantic versions", kubernetes + "#kubernetes-semver-library",
		[]string{"compareTo", "isGreaterThan", "isLessThan", "isSemver", "major", "minor", "patch", "semver"},
		[]string{
			`isSemver("1.2.3") && !isSemver("v1.2") && isSemver("v1.2", true) && semver("v1.2.3", true).major() == 1 && semver("1.2.3").minor() == 2 && semver("1.2.3").patch() == 3`,
			`semver("1.10.0").isGreaterThan(semver("1.9.0")) && semver("1.0.0-rc.1").isLessThan(semver("1.0.0")) && semver("1.0.0").compareTo(semver("1.0.0")) == 0`,
		},
	},
	{
		"Names as Kubernetes wants them", kubernetes + "#kubernetes-format-library",
		[]string{
			"format.byte", "format.date", "format.datetime", "format.dns1035Label", "format.dns1035LabelPrefix", "format.dns1123Label", "format.dns1123LabelPrefix",
			"format.dns1123Subdomain", "format.dns1123SubdomainPrefix", "format.labelValue", "format.named", "format.qualifiedName", "format.uri", "format.uuid", "validate",
		},
		[]string{
			`!format.dns1123Label().validate("api").hasValue() && format.dns1123Label().validate("A_").hasValue() && !format.dns1123Subdomain().validate("a.b").hasValue() && !format.dns1035Label().validate("a").hasValue()`,
			`!format.dns1123LabelPrefix().validate("a-").hasValue() && !format.dns1123SubdomainPrefix().validate("a-").hasValue() && !format.dns1035LabelPrefix().validate("a-").hasValue()`,
			`!format.qualifiedName().validate("example.com/a").hasValue() && !format.labelValue().validate("a").hasValue() && !format.uri().validate("https://a.example").hasValue() && !format.uuid().validate("123e4567-e89b-12d3-a456-426614174000").hasValue()`,
			`!format.date().validate("2026-11-22").hasValue() && !format.datetime().validate("2026-11-22T10:00:00Z").hasValue() && !format.byte().validate("YQ==").hasValue() && format.named("dns1123Label").hasValue()`,
		},
	},
}

func TestFunctionsMatchTheGuide(t *testing.T) {
	t.Parallel()
	subjects := subjectsOf(computeFleet(t, shop))
	promised := map[string]bool{"in": true} // the operator
	for _, group := range groups {
		all := strings.Join(group.expressions, "\n")
		for _, function := range group.functions {
			promised[function] = true
			if !strings.Contains(all, function+"(") {
				t.Errorf("%s: no expression calls %s", group.name, function)
			}
		}
		for _, expression := range group.expressions {
			result := checkRule(t, subjects, fleet.Constraint{Expression: expression + " && environment == 'prod'"})
			if !result.Holds() || result.Passed == 0 {
				t.Errorf("%s: %s: %+v", group.name, expression, result.Violations[:min(1, len(result.Violations))])
			}
		}
	}
	for _, function := range constraint.Functions() {
		if !promised[function] {
			t.Errorf("the guide does not list function %s", function)
		}
		delete(promised, function)
	}
	for function := range promised {
		t.Errorf("the guide lists function %s, which does not exist", function)
	}
	if !slices.IsSortedFunc(groups[0].functions, strings.Compare) {
		t.Error("the functions of the first group are not sorted")
	}
}
