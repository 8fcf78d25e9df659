package fleet

import (
	"fmt"
	"maps"
	"slices"
)

func readElements(o *ObjectReader, path *Path, value any, what string) []any {
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

// Texts reads a list of strings, without unknown and wrong ones; nil if absent.
func (o *ObjectReader) Texts(name string) []string {
	texts := readTextList(o, name, true)
	if texts == nil && o.fields[name] != nil {
		return []string{}
	}
	return slices.DeleteFunc(texts, func(text string) bool { return text == unknownText })
}

func readTexts(o *ObjectReader, name string) []string { return readTextList(o, name, false) }

func readTextList(o *ObjectReader, name string, mayBeEmpty bool) []string {
	value := o.get(name, TextsType)
	if value == nil {
		return nil
	}
	var texts []string
	path := o.At(name)
	for i, element := range readElements(o, path, value, "a list of strings") {
		text, problem := readScalar(o, element)
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

func readSortedTexts(o *ObjectReader, name string) []string {
	texts := readTexts(o, name)
	slices.Sort(texts)
	return slices.Compact(texts)
}

func readCheckedTexts(o *ObjectReader, name string, check func(string) string) []string {
	texts := readSortedTexts(o, name)
	EachText(o, name, func(path *Path, text string) {
		if problem := check(text); text != "" && problem != "" {
			o.reader.Report(path, "%.80q %s", text, problem)
		}
	})
	return texts
}

// EachText calls do for each string of a list.
func EachText(o *ObjectReader, name string, do func(path *Path, text string)) {
	list, _ := o.get(name, TextsType).([]any)
	for i, element := range list {
		if text, ok := element.(string); ok {
			do(o.At(name).Index(i), text)
		}
	}
}

// TextMap reads a map of strings without null elements. Unknown elements are "".
func (o *ObjectReader) TextMap(name string) map[string]string {
	texts := readTextMap(o, name)
	for key, text := range texts {
		texts[key] = knownText(text)
	}
	return texts
}

func readTextMap(o *ObjectReader, name string) map[string]string {
	return readMap(o, name, func(element any) (text, problem string) { return readScalar(o, element) })
}

// readMap calls read for each element. It leaves out null and wrong ones, and returns nil if there are no others.
func readMap(o *ObjectReader, name string, read func(element any) (text, problem string)) map[string]string {
	switch value := o.value(name, TextMapType, QuantitiesType, TextOrTextMapType).(type) {
	case nil:
	case map[string]any:
		texts := make(map[string]string, len(value))
		for _, key := range slices.Sorted(maps.Keys(value)) {
			text, problem := read(value[key])
			if problem != "" {
				o.reader.Report(o.At(name).Key(key), "%s", problem)
			} else if value[key] != nil {
				texts[key] = text
			}
		}
		if len(texts) > 0 {
			return texts
		}
	default:
		o.Report(name, "must be a map of strings, not %s", kindOf(value))
	}
	return nil
}

func readLabels(o *ObjectReader, attribute string) Labels {
	labels := Labels(readTextMap(o, attribute))
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		if o.reader.isFull() {
			break // one message may take kilobytes
		}
		if problem := CheckLabelKey(key); problem != "" {
			o.reader.Report(o.At(attribute).Key(key), "%s", problem)
		}
		if problem := CheckLabelValue(labels[key]); labels[key] != unknownText && problem != "" {
			o.reader.Report(o.At(attribute).Key(key), "%s", problem)
		}
	}
	return labels
}

// ReadTextOrTextMap reads a text or a map of texts.
func ReadTextOrTextMap(o *ObjectReader, name string) (text string, byKey map[string]string) {
	switch value := o.get(name, TextOrTextMapType).(type) {
	case nil:
		return "", nil
	case map[string]any:
		return "", o.TextMap(name)
	default:
		text, problem := readScalar(o, value)
		if problem != "" {
			o.Report(name, "must be a string or a map of strings, not %s", kindOf(value))
		}
		return knownText(text), nil
	}
}

// Object starts to read an object; nil if absent or unknown.
func (o *ObjectReader) Object(name string) *ObjectReader {
	value := o.get(name, ObjectType, TextOrObjectType)
	if value == nil {
		return nil
	}
	return readChild(o, name, o.At(name), value)
}

func tableIn(o *ObjectReader, name string) *Table {
	if o.table == nil {
		return nil
	}
	of := o.table.find(name).Of
	if of == nil {
		panic(fmt.Sprintf("the objects in attribute %q of a %s have no table", name, o.table.Name))
	}
	return of
}

func readChild(o *ObjectReader, name string, path *Path, value any) *ObjectReader {
	return readChildBy(o, tableIn(o, name), path, value)
}

func readChildBy(o *ObjectReader, table *Table, path *Path, value any) *ObjectReader {
	inner, isUnknown := o.reader.object(table, path, value)
	if isUnknown {
		o.noteUnknown()
	}
	if inner != nil {
		inner.parent = o
	}
	return inner
}

// ReadList reads objects, and reports attributes that read ignores.
func ReadList[T any](o *ObjectReader, name string, read func(*ObjectReader) T) []T {
	var all []T
	for _, one := range o.List(name) {
		all = append(all, read(one))
		one.Finish()
	}
	return all
}

// ReadObject is [ReadList] for one object; zero if absent or unknown.
func ReadObject[T any](o *ObjectReader, name string, read func(*ObjectReader) T) (made T) {
	if part := o.Object(name); part != nil {
		made = read(part)
		part.Finish()
	}
	return made
}

// List is [Reader.List] for an attribute.
func (o *ObjectReader) List(name string) []*ObjectReader {
	value := o.get(name, ObjectsType)
	if value == nil {
		return nil
	}
	path := o.At(name)
	return readChildren(o, tableIn(o, name), path, readElements(o, path, value, "a list of objects"))
}

func readChildren(o *ObjectReader, table *Table, path *Path, list []any) []*ObjectReader {
	var objects []*ObjectReader
	paths := elementPaths(path, list)
	for i, element := range list {
		if object := readChildBy(o, table, paths[i], element); object != nil {
			objects = append(objects, object)
		}
	}
	return objects
}
