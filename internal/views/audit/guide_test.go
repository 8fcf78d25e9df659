package audit_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/flotilla/terraform-provider-flotilla/internal/views/audit"
)

func TestGuideNamesEveryMemberOfTheAudit(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../templates/guides/reference-observing.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## The audit report\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, name := range membersOf(reflect.TypeFor[audit.Report]()) {
		if !strings.Contains(section, "`"+name+"`") && !strings.Contains(section, "`"+name+"[]`") && !strings.Contains(section, name+", ") &&
			!strings.Contains(section, ", "+name+"}") {
			t.Errorf("the guide does not name %s", name)
		}
	}
}

// membersOf returns the JSON names of the members of a type and its nested types.
func membersOf(typ reflect.Type) (names []string) {
	for typ.Kind() == reflect.Pointer || typ.Kind() == reflect.Slice {
		typ = typ.Elem()
	}
	if typ.Kind() != reflect.Struct || typ == reflect.TypeFor[time.Time]() {
		return nil
	}
	for field := range typ.Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name != "" && name != "-" {
			names = append(names, name)
		}
		names = append(names, membersOf(field.Type)...)
	}
	return names
}
