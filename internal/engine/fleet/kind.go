package fleet

import (
	"fmt"
	"reflect"
	"strings"
)

// kind defines one kind of objects. Each row has a field of T, its attribute and its reader.
type kind[T any] struct {
	Table
	fields []kindField
	check  func(o *ObjectReader, object *T)
}

type kindField struct {
	name  string
	index []int // empty: the whole struct
	read  func(o *ObjectReader, name string, field any)
}

// row is an attribute and its field. Its name defaults to the field's in JSON.
type row struct {
	Attribute
	field any // points into the probe of [defineKind]; nil if unstored
	read  func(o *ObjectReader, name string, field any)
}

// defineKind calls rows once. Pointers into probe identify fields.
func defineKind[T any](table Table, rows func(probe *T) []row) *kind[T] {
	k, probe := &kind[T]{Table: table}, new(T)
	for _, r := range rows(probe) {
		if r.field != nil {
			f := fieldAt(reflect.ValueOf(probe).Elem(), r.field)
			if r.Name == "" {
				r.Name, _, _ = strings.Cut(f.Tag.Get("json"), ",")
			}
			k.fields = append(k.fields, kindField{r.Name, f.Index, r.read})
		}
		k.Attributes = append(k.Attributes, r.Attribute)
	}
	return k
}

func (k *kind[T]) checkedBy(check func(o *ObjectReader, object *T)) *kind[T] {
	k.check = check
	return k
}

func (k *kind[T]) decode(o *ObjectReader) T { return *k.decodeNew(o) }

func (k *kind[T]) decodeNew(o *ObjectReader) *T {
	object := new(T)
	value := reflect.ValueOf(object).Elem()
	for i := range k.fields {
		k.fields[i].read(o, k.fields[i].name, value.FieldByIndex(k.fields[i].index).Addr().Interface())
	}
	if k.check != nil {
		k.check(o, object)
	}
	return object
}

func fieldAt(object reflect.Value, pointer any) reflect.StructField {
	if object.Addr().Interface() == pointer {
		return reflect.StructField{}
	}
	for _, f := range reflect.VisibleFields(object.Type()) {
		if object.FieldByIndex(f.Index).Addr().Interface() == pointer {
			return f
		}
	}
	panic(fmt.Sprintf("%T points to no field of a %s", pointer, object.Type()))
}

func storedAttribute[F any](field *F, a Attribute, read func(o *ObjectReader, name string) F) row {
	return row{a, field, func(o *ObjectReader, name string, field any) { *field.(*F) = read(o, name) }}
}

// spreadAttribute stores into several fields.
func spreadAttribute[T any](object *T, a Attribute, read func(o *ObjectReader, object *T)) row {
	return row{a, object, func(o *ObjectReader, _ string, object any) { read(o, object.(*T)) }}
}

// unstoredAttribute is read by the kind's decoder.
func unstoredAttribute(a Attribute) row { return row{Attribute: a} }

func namedAttribute(field *string, form *Form, meaning string) row {
	return storedAttribute(field, Attribute{Required: true, Form: form, Meaning: meaning}, func(o *ObjectReader, _ string) string {
		return readName(o, form.check)
	})
}

func textAttribute(field *string, a Attribute) row {
	return storedAttribute(field, a, func(o *ObjectReader, name string) string {
		text, given := readText(o, name), o.fields[name]
		switch {
		case a.Required && (given == nil || given == ""):
			o.Report(name, "is required")
		case a.Allowed != nil:
			text = readOneOf(o, name)
		case text == "":
			text = a.text()
		case a.Form != nil:
			checkText(o, name, text, a.Form.check)
		}
		return text
	})
}

// choiceAttribute is an allowed text. Its default is not stored.
func choiceAttribute(field *string, a Attribute) row {
	return storedAttribute(field, a, readOneOfOrNone)
}

func textsAttribute(field *[]string, a Attribute) row {
	a.Type = TextsType
	if a.Form == nil {
		return storedAttribute(field, a, readSortedTexts)
	}
	return storedAttribute(field, a, func(o *ObjectReader, name string) []string { return readCheckedTexts(o, name, a.Form.check) })
}

var (
	descriptionAttribute = Attribute{Name: "description", Meaning: "Description for people; nothing is computed from it."}
	environmentAttribute = Attribute{
		Name: "environment", Form: labelForm, Meaning: "Name of the environment that it belongs to. Unset: every environment.",
	}
)

func labelsAttribute(field *Labels) row {
	return storedAttribute(field, Attribute{
		Type: TextMapType, Keys: labelKeyForm, Form: labelValueForm, NullElements: true,
		Meaning: "Kubernetes labels, a map of texts, which selectors and config containers match. Numbers and bools must be in quotes.",
	}, readLabels)
}

func taintsAttribute(field *[]Taint) row {
	return listAttribute(field, taintKind, Attribute{
		Meaning: "They keep deployment targets away unless their policy tolerates them, by Kubernetes' rules.",
	})
}

func quantitiesAttribute(field *map[string]string, a Attribute) row {
	a.Type, a.NullElements = QuantitiesType, true
	return storedAttribute(field, a, readQuantities)
}

func objectOfAnyShape(field *map[string]any, a Attribute) row {
	a.Type = AnyObjectType
	return storedAttribute(field, a, readAnyObject)
}

func wholeAttribute(field *int, a Attribute) row {
	a.Type = WholeType
	return storedAttribute(field, a, (*ObjectReader).Int)
}

func objectAttribute[P any](field **P, of *kind[P], a Attribute) row {
	a.Type, a.Of = ObjectType, &of.Table
	return storedAttribute(field, a, func(o *ObjectReader, name string) *P { return ReadObject(o, name, of.decodeNew) })
}

func partAttribute[P any](field *P, of *kind[P], a Attribute) row {
	a.Type, a.Of = ObjectType, &of.Table
	return storedAttribute(field, a, func(o *ObjectReader, name string) P { return ReadObject(o, name, of.decode) })
}

func listAttribute[P any](field *[]P, of *kind[P], a Attribute) row {
	a.Type, a.Of = ObjectsType, &of.Table
	return storedAttribute(field, a, func(o *ObjectReader, name string) []P { return ReadList(o, name, of.decode) })
}

func inMarkdown(texts []string) string { return "`" + strings.Join(texts, "`, `") + "`" }
