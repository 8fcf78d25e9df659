package fleet

import (
	"fmt"
	"slices"
)

// The lists, maps and objects in the attributes of an [ObjectReader].

// listOf returns the elements of a list; nil for one that is absent, unknown or something else.
func (o *ObjectReader) listOf(path *Path, value any, what string) []any {
	switch value := value.(type) {
	case nil:
	case Unknown:
		o.noteUnknown()
	case []any:
		return value
	default:
		o.reader.Report(path, "must be %s, not %s", what, kindOf(value))
	}
	return nil
}

// Texts reads a list of strings: nil where it is absent, and without those that are unknown or wrong.
func (o *ObjectReader) Texts(name string) []string {
	texts := o.textList(name, true)
	if texts == nil && o.fields[name] != nil {
		return []string{}
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == unknownText })
}

// texts reads a list of strings that are not empty; nil where it has none.
func (o *ObjectReader) texts(name string) []string { return o.textList(name, false) }

func (o *ObjectReader) textList(name string, mayBeEmpty bool) []string {
	value := o.get(name, TextsType)
	if value == nil {
		return nil
	}
	var texts []string
	path := o.At(name)
	for i, element := range o.listOf(path, value, "a list of strings") {
		text, problem := o.scalar(element)
		if problem == "" && (element == nil || element == "" && !mayBeEmpty) {
			problem = "must be a string, neither null nor empty"
		}
		if problem != "" {
			o.reader.Report(path.Index(i), "%s", problem)
			continue
		}
		texts = append(texts, text)
	}
	return texts
}

// sortedTexts reads a list of strings whose order has no meaning.
func (o *ObjectReader) sortedTexts(name string) []string {
	texts := o.texts(name)
	slices.Sort(texts)
	return slices.Compact(texts)
}

// checkedTexts is sortedTexts for texts of which check says what is wrong with one, or "".
func (o *ObjectReader) checkedTexts(name string, check func(string) string) []string {
	texts := o.sortedTexts(name)
	EachText(o, name, func(path *Path, text string) {
		if problem := check(text); text != "" && problem != "" {
			o.reader.Report(path, "%q %s", text, problem)
		}
	})
	return texts
}

// EachText calls do with each string of a list.
func EachText(o *ObjectReader, name string, do func(path *Path, text string)) {
	list, _ := o.get(name, TextsType).([]any)
	for i, element := range list {
		if text, ok := element.(string); ok {
			do(o.At(name).Index(i), text)
		}
	}
}

// TextMap reads a map of strings; null elements are left out, and unknown ones are "".
func (o *ObjectReader) TextMap(name string) map[string]string {
	texts := o.textMap(name)
	for key, text := range texts {
		texts[key] = knownText(text)
	}
	return texts
}

// textMap is TextMap with [unknownText] for unknown elements.
func (o *ObjectReader) textMap(name string) map[string]string {
	switch value := o.value(name, TextMapType, QuantitiesType, TextOrTextMapType).(type) {
	case nil:
	case map[string]any:
		texts := make(map[string]string, len(value))
		var wrong []string
		for key, element := range value {
			text, problem := o.scalar(element)
			if problem != "" {
				wrong = append(wrong, key)
			} else if element != nil {
				texts[key] = text
			}
		}
		slices.Sort(wrong)
		for _, key := range wrong {
			_, problem := o.scalar(value[key])
			o.reader.Report(o.At(name).Key(key), "%s", problem)
		}
		if len(texts) > 0 {
			return texts
		}
	default:
		o.Report(name, "must be a map of strings, not %s", kindOf(value))
	}
	return nil
}

// ReadTextOrTextMap reads a text, or a map of texts as [ObjectReader.TextMap] does; the other is then empty.
func ReadTextOrTextMap(o *ObjectReader, name string) (text string, byKey map[string]string) {
	switch value := o.get(name, TextOrTextMapType).(type) {
	case nil:
		return "", nil
	case map[string]any:
		return "", o.TextMap(name)
	default:
		text, problem := o.scalar(value)
		if problem != "" {
			o.Report(name, "must be a string or a map of strings, not %s", kindOf(value))
		}
		return knownText(text), nil
	}
}

// Object begins to read an object that is part of this one; nil where there is none that is known.
func (o *ObjectReader) Object(name string) *ObjectReader {
	value := o.get(name, ObjectType, TextOrObjectType)
	if value == nil {
		return nil
	}
	return o.child(name, o.At(name), value)
}

// tableOf is the table of the objects in an attribute.
func (o *ObjectReader) tableOf(name string) *Table {
	if o.table == nil {
		return nil
	}
	of := o.table.find(name).Of
	if of == nil {
		panic(fmt.Sprintf("the objects in attribute %q of a %s have no table", name, o.table.Name))
	}
	return of
}

// child begins to read an object in an attribute.
func (o *ObjectReader) child(name string, path *Path, value any) *ObjectReader {
	return o.childBy(o.tableOf(name), path, value)
}

func (o *ObjectReader) childBy(table *Table, path *Path, value any) *ObjectReader {
	inner, isUnknown := o.reader.object(table, path, value)
	if isUnknown {
		o.noteUnknown()
	}
	if inner != nil {
		inner.parent = o
	}
	return inner
}

// ReadList reads a list of objects, each with a function, and reports the attributes that this has not read.
func ReadList[T any](o *ObjectReader, name string, read func(*ObjectReader) T) []T {
	var all []T
	for _, one := range o.List(name) {
		all = append(all, read(one))
		one.Finish()
	}
	return all
}

// ReadObject reads an object that is part of another one with a function, and reports the attributes that this has not read. It
// returns the zero value where there is no object that is known.
func ReadObject[T any](o *ObjectReader, name string, read func(*ObjectReader) T) (made T) {
	if part := o.Object(name); part != nil {
		made = read(part)
		part.Finish()
	}
	return made
}

// List reads a list of objects. An object is named in findings, not numbered, where its name is unique.
func (o *ObjectReader) List(name string) []*ObjectReader {
	value := o.get(name, ObjectsType)
	if value == nil {
		return nil
	}
	path := o.At(name)
	return o.children(o.tableOf(name), path, o.listOf(path, value, "a list of objects"))
}

func (o *ObjectReader) children(table *Table, path *Path, list []any) []*ObjectReader {
	var objects []*ObjectReader
	paths := elementPaths(path, list)
	for i, element := range list {
		if object := o.childBy(table, paths[i], element); object != nil {
			objects = append(objects, object)
		}
	}
	return objects
}
